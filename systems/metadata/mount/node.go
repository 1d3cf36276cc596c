package mount

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skerry/systems/metadata"
)

type node struct {
	fs.Inode
	*volume

	mu      sync.Mutex
	handles int            // open handles
	data    []byte         // content while open
	dirty   bool           // data has unsaved changes
	gone    bool           // removed or replaced
	last    metadata.Entry // last known attributes, for open handles of a removed file
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

func (n *node) newChild(ctx context.Context, e metadata.Entry, out *fuse.EntryOut) *fs.Inode {
	n.attributes(e, &out.Attr)
	return n.NewInode(ctx, &node{volume: n.volume, last: e}, fs.StableAttr{Mode: fileType(e.Kind), Ino: e.ID})
}

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

// showSize sets the size of an open file, which the service may not know yet.
func (n *node) showSize(out *fuse.Attr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handles > 0 {
		out.Size = uint64(len(n.data))
		out.Blocks = (out.Size + 511) / 512
	}
}

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

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	e, err := n.stat()
	if err != nil {
		return errno(err)
	}
	n.attributes(e, &out.Attr)
	n.showSize(&out.Attr)
	return 0
}

// stat returns the entry from the service, or its last attributes if it was removed.
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
		// A later flush would change the time again.
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

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	r := n.runCommand(metadata.Command{Op: metadata.Mkdir, Path: n.child(name), Mode: uint16(mode & metadata.MaxMode)})
	if r.Err != nil {
		return nil, errno(r.Err)
	}
	return n.newChild(ctx, r.Entries[0], out), 0
}

func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return errno(n.runCommand(metadata.Command{Op: metadata.Rmdir, Path: n.child(name)}).Err)
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.removeOpen(n.GetChild(name), func() error {
		return n.runCommand(metadata.Command{Op: metadata.Remove, Path: n.child(name)}).Err
	})
}

// removeOpen calls do, which removes a file. Handles that have it open keep its content.
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

// Statfs implements fs.NodeStatfser with nominal values, since there is no fixed capacity.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, metadata.MaxName
	out.Blocks, out.Bfree, out.Bavail = 1<<30, 1<<30, 1<<30
	out.Files, out.Ffree = 1<<40, 1<<40
	return 0
}

// handle is an open file. All handles of a file share the content in its node.
type handle struct {
	n *node
}

var (
	_ fs.FileReader   = (*handle)(nil)
	_ fs.FileWriter   = (*handle)(nil)
	_ fs.FileFlusher  = (*handle)(nil)
	_ fs.FileFsyncer  = (*handle)(nil)
	_ fs.FileReleaser = (*handle)(nil)
)

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle,
	uint32, syscall.Errno) {
	r := n.runCommand(metadata.Command{Op: metadata.Create, Path: n.child(name), Mode: uint16(mode & metadata.MaxMode)})
	if errno(r.Err) == syscall.EEXIST && flags&syscall.O_EXCL == 0 {
		r = n.runCommand(metadata.Command{Op: metadata.Stat, Path: n.child(name)})
	}
	if r.Err != nil {
		return nil, nil, 0, errno(r.Err)
	}
	inode := n.newChild(ctx, r.Entries[0], out)
	made, ok := inode.Operations().(*node)
	if !ok {
		return nil, nil, 0, syscall.EIO
	}
	// The kernel learns the name only when Create returns, so path() is not valid yet.
	if e := made.open(n.child(name), flags); e != 0 {
		return nil, nil, 0, e
	}
	made.showSize(&out.Attr)
	return inode, &handle{made}, 0, 0
}

func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if e := n.open(n.path(), flags); e != 0 {
		return nil, 0, e
	}
	return &handle{n}, 0, 0
}

func (n *node) open(path string, flags uint32) syscall.Errno {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handles == 0 && !n.gone {
		r := n.runCommand(metadata.Command{Op: metadata.Read, Path: path})
		if r.Err != nil {
			return errno(r.Err)
		}
		n.data, n.dirty = r.Data, false
	}
	if flags&syscall.O_TRUNC != 0 && len(n.data) > 0 {
		n.data, n.dirty = nil, true
	}
	n.handles++
	return 0
}

func (h *handle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if off >= int64(len(h.n.data)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, h.n.data[off:])]), 0
}

func (h *handle) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	end := off + int64(len(data))
	if end > metadata.MaxFile {
		return 0, syscall.EFBIG
	}
	h.n.grow(end)
	copy(h.n.data[off:], data)
	h.n.dirty = true
	return uint32(len(data)), 0
}

func (n *node) grow(size int64) {
	if more := int(size) - len(n.data); more > 0 {
		n.data = append(slices.Grow(n.data, more), make([]byte, more)...)
	}
}

func (n *node) resize(size uint64) syscall.Errno {
	if size > metadata.MaxFile {
		return syscall.EFBIG
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handles == 0 {
		r := n.runCommand(metadata.Command{Op: metadata.Read, Path: n.path()})
		if r.Err != nil {
			return errno(r.Err)
		}
		n.data = r.Data
	}
	n.grow(int64(size))
	n.data, n.dirty = n.data[:size], true
	if n.handles > 0 {
		return 0 // written when closed
	}
	return n.store()
}

func (n *node) flush() syscall.Errno {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.store()
}

func (n *node) store() syscall.Errno {
	if !n.dirty || n.gone {
		return 0
	}
	r := n.runCommand(metadata.Command{Op: metadata.Write, Path: n.path(), Data: n.data})
	if r.Err == nil {
		n.dirty = false
	}
	return errno(r.Err)
}

// Flush implements fs.FileFlusher: the program closes the file and gets the error.
func (h *handle) Flush(context.Context) syscall.Errno { return h.n.flush() }

func (h *handle) Fsync(context.Context, uint32) syscall.Errno { return h.n.flush() }

func (h *handle) Release(context.Context) syscall.Errno {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	e := h.n.store()
	if h.n.handles--; h.n.handles == 0 {
		h.n.data, h.n.dirty = nil, false
	}
	return e
}
