package tree

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"skerry/systems/metadata"
)

var ErrSnapshot = errors.New("invalid tree snapshot")

const snapshotVersion = 1

// Snapshot is the tree at one moment. It stores the old state of each node that changes while the snapshot is written.
type Snapshot struct {
	tree   *Tree
	lastID uint64
	mu     sync.RWMutex
	before map[*node]*state
}

// ErrSnapshotUnderWay means that the tree already has a snapshot that is not closed.
var ErrSnapshotUnderWay = errors.New("another snapshot is in progress")

// Snapshot captures the tree between two changes. Close ends the snapshot.
func (t *Tree) Snapshot() (*Snapshot, error) {
	defer t.moves.lockAll(&t.waits)()
	s := &Snapshot{tree: t, lastID: t.lastID.Load(), before: make(map[*node]*state)}
	if !t.snap.CompareAndSwap(nil, s) {
		return nil, ErrSnapshotUnderWay
	}
	return s, nil
}

func (s *Snapshot) Close() { s.tree.snap.CompareAndSwap(s, nil) }

// saveState saves a node's state before its first change.
func (s *Snapshot) saveState(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, kept := s.before[n]; !kept {
		s.before[n] = n.state.Load()
	}
}

// state returns a node's state at the moment of the snapshot. A change saves the old state before it stores the new one.
// So if the loaded state is new, the old one has been saved.
func (s *Snapshot) state(n *node) *state {
	now := n.state.Load()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if before, kept := s.before[n]; kept {
		return before
	}
	return now
}

// Write encodes version, last id, and then the nodes, each followed by its children:
//
//	node: kind (a byte), name, id, mode, time (zigzag), then
//	      a directory: number of entries; otherwise the text: a file's content, the owner
//
// Numbers are uvarints. Texts are preceded by their length.
func (s *Snapshot) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	var scratch []byte
	scratch = binary.AppendUvarint(append(scratch, snapshotVersion), s.lastID)
	if _, err := b.Write(scratch); err != nil {
		return err
	}
	if err := s.writeNode(b, &scratch, item{"", s.tree.root}); err != nil {
		return err
	}
	return b.Flush()
}

func (s *Snapshot) writeNode(w *bufio.Writer, scratch *[]byte, it item) error {
	at := s.state(it.node)
	b := append((*scratch)[:0], byte(at.kind))
	b = binary.AppendUvarint(b, uint64(len(it.name)))
	b = append(b, it.name...)
	b = binary.AppendUvarint(b, it.node.id)
	b = binary.AppendUvarint(b, uint64(at.mode))
	b = binary.AppendVarint(b, at.modified)
	if at.kind == metadata.Directory {
		b = binary.AppendUvarint(b, uint64(at.kids.len()))
	} else {
		b = binary.AppendUvarint(b, uint64(len(at.content())))
	}
	*scratch = b
	if _, err := w.Write(b); err != nil {
		return err
	}
	if at.kind != metadata.Directory {
		_, err := w.WriteString(at.content())
		return err
	}
	var err error
	at.kids.each("", true, func(it item) bool {
		err = s.writeNode(w, scratch, it)
		return err == nil
	})
	return err
}

// Load decodes a snapshot into a new tree.
func Load(r io.Reader) (*Tree, error) {
	l := &loader{r: bufio.NewReaderSize(r, 1<<18), tree: New()}
	version := l.readByte()
	if l.err == nil && version != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d, this program supports %d", ErrSnapshot, version, snapshotVersion)
	}
	l.tree.lastID.Store(l.readUvarint())
	l.tree.counts.directories.Store(0)
	name, root := l.readNode(nil, 0)
	if l.err == nil && (name != "" || root.state.Load().kind != metadata.Directory) {
		l.fail("invalid root")
	}
	if l.err == nil {
		if _, err := l.r.ReadByte(); err != io.EOF {
			l.fail("trailing data")
		}
	}
	if l.err != nil {
		return nil, fmt.Errorf("reading a tree: %w", l.err)
	}
	l.tree.root = root
	return l.tree, nil
}

type loader struct {
	r       *bufio.Reader
	tree    *Tree
	err     error
	scratch []byte
	items   []item // of all directories being read, innermost last
}

func (l *loader) fail(what string) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: %s", ErrSnapshot, what)
	}
}

func (l *loader) readByte() byte {
	if l.err != nil {
		return 0
	}
	b, err := l.r.ReadByte()
	l.checkRead(err)
	return b
}

func (l *loader) checkRead(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		l.fail("unexpected end")
	} else if err != nil && l.err == nil {
		l.err = err
	}
}

func (l *loader) readUvarint() uint64 {
	if l.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(l.r)
	l.checkRead(err)
	return v
}

func (l *loader) readText(limit uint64) string {
	n := l.readUvarint()
	if n > limit {
		l.fail("text too long")
	}
	if l.err != nil || n == 0 {
		return ""
	}
	if uint64(cap(l.scratch)) < n {
		l.scratch = make([]byte, n)
	}
	b := l.scratch[:n]
	_, err := io.ReadFull(l.r, b)
	l.checkRead(err)
	return string(b)
}

func (l *loader) readNode(parent *node, depth int) (string, *node) {
	s := state{kind: metadata.Kind(l.readByte())}
	name := l.readText(metadata.MaxName)
	n := &node{id: l.readUvarint(), parent: parent}
	s.mode = uint16(l.readUvarint())
	u := l.readUvarint()
	s.modified = int64(u>>1) ^ -int64(u&1)
	switch {
	case s.kind == metadata.Directory:
		l.readEntries(n, &s, depth)
	case s.kind == metadata.File || s.kind == metadata.Virtual:
		if text := l.readText(metadata.MaxFile); text != "" {
			s.text = &text
		}
	default:
		l.fail("unknown kind of node")
	}
	if l.err != nil {
		return "", nil
	}
	l.tree.addCounts(&s, 1)
	if s.kind == metadata.Virtual {
		l.tree.trackVirtual(n, s.kind)
	}
	n.state.Store(&s)
	return name, n
}

func (l *loader) readEntries(n *node, s *state, depth int) {
	if depth > metadata.MaxDepth {
		l.fail("too many levels")
	}
	base := len(l.items)
	for count := l.readUvarint(); count > 0 && l.err == nil; count-- {
		name, kid := l.readNode(n, depth+1)
		if l.err == nil && (metadata.CheckName(name) != nil || len(l.items) > base && l.items[len(l.items)-1].name >= name) {
			l.fail("names out of order")
		}
		l.items = append(l.items, item{name, kid})
	}
	if l.err == nil {
		s.kids = buildSet(l.items[base:])
	}
	l.items = l.items[:base]
}
