package mount

import (
	"context"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skerry/systems/metadata"
)

// handle is an open file. All handles of a file share its node's content.
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

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
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
	// The kernel's name for it is there only once this has returned: it is read by ours.
	if e := made.open(n.child(name), flags); e != 0 {
		return nil, nil, 0, e
	}
	made.showSize(&out.Attr)
	return inode, &handle{made}, 0, 0
}

// Open implements fs.NodeOpener.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if e := n.open(n.path(), flags); e != 0 {
		return nil, 0, e
	}
	return &handle{n}, 0, 0
}

// open has the first handle read the content.
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

// Read implements fs.FileReader.
func (h *handle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if off >= int64(len(h.n.data)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, h.n.data[off:])]), 0
}

// Write implements fs.FileWriter.
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

// grow makes the content at least so long, with zeros; the node is locked.
func (n *node) grow(size int64) {
	if more := int(size) - len(n.data); more > 0 {
		n.data = append(slices.Grow(n.data, more), make([]byte, more)...)
	}
}

// resize cuts or stretches a file, open or not.
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
		return 0 // written when it is closed
	}
	return n.store()
}

// flush gives the service what was written.
func (n *node) flush() syscall.Errno {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.store()
}

// store is flush for a node that is locked.
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

// Flush implements fs.FileFlusher: a program closed the file, and is told what became of
// it.
func (h *handle) Flush(context.Context) syscall.Errno { return h.n.flush() }

// Fsync implements fs.FileFsyncer: what the service acknowledges is durable.
func (h *handle) Fsync(context.Context, uint32) syscall.Errno { return h.n.flush() }

// Release implements fs.FileReleaser.
func (h *handle) Release(context.Context) syscall.Errno {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	e := h.n.store()
	if h.n.handles--; h.n.handles == 0 {
		h.n.data, h.n.dirty = nil, false
	}
	return e
}
