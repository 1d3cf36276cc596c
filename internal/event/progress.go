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
	update   Update
}

// accept says when the request was accepted; of several requests the last one counts.
func (p *progress) accept(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted = at
}

func (p *progress) acceptNow() { p.accept(time.Now()) }

// moved adds what the change moved.
func (p *progress) moved(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
}

// changed notes a change of links.
func (p *progress) changed(u Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update = u
}

func (p *progress) links() Update {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.update
}

func (p *progress) told() (accepted time.Time, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted, p.bytes
}
