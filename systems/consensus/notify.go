package consensus

import (
	"sync"
	"time"
)

// Consumers of several members may share a state, and one of them applies the log to it. The others subscribe to its
// progress with a frame each way, instead of polling:
//
//	subscribe  ──►  notify this member of applied entries for subscriptionTime
//	notify     ◄──  at once, and with every batch until then
//
// A notification is a hint to read the state, since a frame may be lost and the state may have moved backwards.

const subscriptionTime = time.Second

type subscriptions struct {
	mu    sync.Mutex
	until map[uint64]time.Time
}

// Subscribe asks member id to notify this one at once, and for a second whenever its consumer has applied entries. It
// returns false if the member is unknown or cannot be reached.
func (n *Node) Subscribe(id uint64) bool {
	if !n.tr.send(message{to: id, note: frameSubscribe}) {
		return false
	}
	n.tr.flush(id)
	return true
}

// NotifySubscribers notifies all subscribers that the consumer has applied entries.
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

// Notified returns a channel that holds a value after a notification of another member.
func (n *Node) Notified() <-chan struct{} { return n.notified }

func (n *Node) notify(id uint64) {
	if n.tr.send(message{to: id, note: frameNotify}) {
		n.tr.flush(id)
	}
}

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
		default: // the previous one has not been received yet
		}
	}
}
