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

// subscriptionTime is for how long a member is told of what is applied after it has asked.
const subscriptionTime = time.Second

// subscriptions are the members that want to be told.
type subscriptions struct {
	mu    sync.Mutex
	until map[uint64]time.Time
}

// Subscribe asks a member to tell this one, for a second, whenever its consumer has applied entries;
// it does so at once, too. False: the member is of a version that does not tell, or unknown.
func (n *Node) Subscribe(id uint64) bool {
	if !n.tr.supportsNotify(id) || !n.tr.send(message{to: id, note: frameSubscribe}) {
		return false
	}
	n.tr.flush(id)
	return true
}

// NotifySubscribers tells who has asked that the consumer has applied entries.
func (n *Node) NotifySubscribers() {
	n.subscribers.mu.Lock()
	defer n.subscribers.mu.Unlock()
	now := time.Now()
	for id, until := range n.subscribers.until {
		if now.After(until) {
			delete(n.subscribers.until, id)
			continue
		}
		n.notify(id)
	}
}

// Notified returns a channel that holds one when a member that was asked has told of something.
func (n *Node) Notified() <-chan struct{} { return n.notified }

// notify tells one member. What is lost on the way is told again with the next batch.
func (n *Node) notify(id uint64) {
	if n.tr.send(message{to: id, note: frameNotify}) {
		n.tr.flush(id)
	}
}

// handleNote takes a frame of another member.
func (n *Node) handleNote(from uint64, note frameKind) {
	switch note {
	case frameSubscribe:
		n.subscribers.mu.Lock()
		defer n.subscribers.mu.Unlock()
		n.subscribers.until[from] = time.Now().Add(subscriptionTime)
		n.notify(from)
	case frameNotify:
		select {
		case n.notified <- struct{}{}:
		default: // the one before has not been seen yet
		}
	}
}

// supportsNotify tells whether a member knows such frames.
func (t *transport) supportsNotify(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.notifies[id]
}
