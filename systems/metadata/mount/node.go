package mount

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skerry/systems/metadata"
)

// node is a directory or file as the kernel knows it.
type node struct {
	fs.Inode
	*volume

	mu      sync.Mutex
	handles int            // how many have the file open
	data    []byte         // its content while it is open
	dirty   bool           // data is not what the service has
	gone    bool           // it was removed, or replaced
	last    metadata.Entry // as it was last seen: what is removed is still open to some
}

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
)

func (n *node) path() string { return "/" + n.Path(nil) }

func (n *node) child(name string) string { return metadata.Join(n.path(), name) }

// newChild is the kernel's node of an entry.
func (n *node) newChild(ctx context.Context, e metadata.Entry, out *fuse.EntryOut) *fs.Inode {
	n.attributes(e, &out.Attr)
	return n.NewInode(ctx, &node{volume: n.volume, last: e}, fs.StableAttr{Mode: fileType(e.Kind), Ino: e.ID})
}

// Lookup implements fs.NodeLookuper.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	r := n.runCommand(metadata.Command{Op: metadata.Stat, Path: n.child(name)})
	if r.Err != nil {
		return nil, errno(r.Err)
	}
	inode := n.newChild(ctx, r.Entries[0], out)
	if known, ok := inode.Operations().(*node); ok {
		known.showSize(&out.Attr)
	}
	return inode, 0
}

// showSize shows the size that an open file has here.
func (n *node) showSize(out *fuse.Attr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handles > 0 {
		out.Size = uint64(len(n.data))
		out.Blocks = (out.Size + 511) / 512
	}
}

// Readdir implements fs.NodeReaddirer: the pages of the directory, one after the other.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	c := metadata.Command{Op: metadata.List, Path: n.path(), Long: true, Limit: metadata.MaxLimit}
	var list []fuse.DirEntry
	for {
		r := n.runCommand(c)
		if r.Err != nil {
			return nil, errno(r.Err)
		}
		for _, e := range r.Entries {
			list = append(list, fuse.DirEntry{Name: e.Name, Ino: e.ID, Mode: fileType(e.Kind)})
		}
		if c.After = r.Next; c.After == "" {
			return fs.NewListDirStream(list), 0
		}
	}
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	e, err := n.stat()
	if err != nil {
		return errno(err)
	}
	n.attributes(e, &out.Attr)
	n.showSize(&out.Attr)
	return 0
}

// stat is the entry as the service has it, or as it was when it was removed.
func (n *node) stat() (metadata.Entry, error) {
	n.mu.Lock()
	gone, last := n.gone, n.last
	n.mu.Unlock()
	if gone {
		return last, nil
	}
	r := n.runCommand(metadata.Command{Op: metadata.Stat, Path: n.path()})
	if r.Err != nil {
		return last, r.Err
	}
	n.mu.Lock()
	n.last = r.Entries[0]
	n.mu.Unlock()
	return r.Entries[0], nil
}

// Setattr implements fs.NodeSetattrer. Owners are those who mounted, and stay so.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if uid, ok := in.GetUID(); ok && uid != n.uid {
		return syscall.EPERM
	}
	if gid, ok := in.GetGID(); ok && gid != n.gid {
		return syscall.EPERM
	}
	if size, ok := in.GetSize(); ok {
		if e := n.resize(size); e != 0 {
			return e
		}
	}
	n.mu.Lock()
	gone := n.gone
	n.mu.Unlock()
	if mode, ok := in.GetMode(); ok && !gone {
		r := n.runCommand(metadata.Command{Op: metadata.Chmod, Path: n.path(), Mode: uint16(mode & metadata.MaxMode)})
		if r.Err != nil {
			return errno(r.Err)
		}
	}
	if t, ok := in.GetMTime(); ok && !gone {
		if t.IsZero() {
			t = time.Now()
		}
		// What is written later would set the time again.
		if e := n.flush(); e != 0 {
			return e
		}
		r := n.runCommand(metadata.Command{Op: metadata.Touch, Path: n.path(), Time: t.UnixNano()})
		if r.Err != nil {
			return errno(r.Err)
		}
	}
	return n.Getattr(ctx, f, out)
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	r := n.runCommand(metadata.Command{Op: metadata.Mkdir, Path: n.child(name), Mode: uint16(mode & metadata.MaxMode)})
	if r.Err != nil {
		return nil, errno(r.Err)
	}
	return n.newChild(ctx, r.Entries[0], out), 0
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return errno(n.runCommand(metadata.Command{Op: metadata.Rmdir, Path: n.child(name)}).Err)
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.removeOpen(n.GetChild(name), func() error {
		return n.runCommand(metadata.Command{Op: metadata.Remove, Path: n.child(name)}).Err
	})
}

// removeOpen does what removes a file, which whoever has it open keeps as it is.
func (n *node) removeOpen(lost *fs.Inode, do func() error) syscall.Errno {
	if lost != nil {
		if l, ok := lost.Operations().(*node); ok {
			l.mu.Lock()
			defer l.mu.Unlock()
			err := do()
			l.gone = l.gone || err == nil
			return errno(err)
		}
	}
	return errno(do())
}

// Rename implements fs.NodeRenamer.
func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ok := parent.(*node)
	if !ok {
		return syscall.EXDEV
	}
	const noReplace = 1 // RENAME_NOREPLACE of renameat2(2)
	if flags&^noReplace != 0 {
		return syscall.EINVAL
	}
	c := metadata.Command{Op: metadata.Move, Path: n.child(name), To: to.child(newName), Replace: flags&noReplace == 0}
	lost := to.GetChild(newName)
	if c.Path == c.To {
		return 0
	}
	return n.removeOpen(lost, func() error { return n.runCommand(c).Err })
}

// Statfs implements fs.NodeStatfser: there is no end that could be told.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, metadata.MaxName
	out.Blocks, out.Bfree, out.Bavail = 1<<30, 1<<30, 1<<30
	out.Files, out.Ffree = 1<<40, 1<<40
	return 0
}
