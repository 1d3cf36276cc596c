package event

import (
	"sync"
	"time"
)

// progress is where an action tells how far it is: from any goroutine.
type progress struct {
	mu       sync.Mutex
	accepted time.Time
	bytes    int64
	update   LinkUpdate
}

// accept says when the request was accepted; of several requests the last one counts.
func (p *progress) accept(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted = at
}

func (p *progress) acceptNow() { p.accept(time.Now()) }

// addBytes adds what the change moved.
func (p *progress) addBytes(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
}

// setLinkUpdate notes a change of links.
func (p *progress) setLinkUpdate(u LinkUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update = u
}

func (p *progress) linkUpdate() LinkUpdate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.update
}

func (p *progress) acceptance() (accepted time.Time, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted, p.bytes
}
