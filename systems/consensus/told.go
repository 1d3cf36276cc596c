package consensus

import (
	"sync"
	"time"
)

// Consumers of several members may share a state, one of them applying the log to it. The others
// learn from it how far that is, once they have asked, by a frame each way: nobody has to look
// again and again, and nobody who does not ask costs a message.
//
//	heed  ──►  tell me of what you apply, for a while
//	told  ◄──  at once, and with every batch until then
//
// What is told is a reason to look, no more: a frame may be lost, and the state may have gone back.

// heedTime is for how long a member is told of what is applied after it has asked.
const heedTime = time.Second

// heeders are the members that want to be told.
type heeders struct {
	mu    sync.Mutex
	until map[uint64]time.Time
}

// Heed asks a member to tell this one, for a second, whenever its consumer has applied entries;
// it does so at once, too. False: the member is of a version that does not tell, or unknown.
func (n *Node) Heed(id uint64) bool {
	if !n.tr.tells(id) || !n.tr.send(message{to: id, note: frameHeed}) {
		return false
	}
	n.tr.flush(id)
	return true
}

// Tell tells who has asked that the consumer has applied entries.
func (n *Node) Tell() {
	n.heeders.mu.Lock()
	defer n.heeders.mu.Unlock()
	now := time.Now()
	for id, until := range n.heeders.until {
		if now.After(until) {
			delete(n.heeders.until, id)
			continue
		}
		n.tell(id)
	}
}

// Told returns a channel that holds one when a member that was asked has told of something.
func (n *Node) Told() <-chan struct{} { return n.told }

// tell tells one member. What is lost on the way is told again with the next batch.
func (n *Node) tell(id uint64) {
	if n.tr.send(message{to: id, note: frameTold}) {
		n.tr.flush(id)
	}
}

// noted takes a frame of another member.
func (n *Node) noted(from uint64, note frameKind) {
	switch note {
	case frameHeed:
		n.heeders.mu.Lock()
		defer n.heeders.mu.Unlock()
		n.heeders.until[from] = time.Now().Add(heedTime)
		n.tell(from)
	case frameTold:
		select {
		case n.told <- struct{}{}:
		default: // the one before has not been seen yet
		}
	}
}

// tells tells whether a member knows such frames.
func (t *transport) tells(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.telling[id]
}
