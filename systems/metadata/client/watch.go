package client

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"skerry/systems/metadata/protocol"
)

// StatusPoller asks servers that share a tree how they stand, each replica by itself.
type StatusPoller struct {
	patience time.Duration
	with     []Option

	mu       sync.Mutex
	replicas map[string][]*Client // by server
}

// watchPatience is how long a replica's status is waited for.
const watchPatience = 3 * time.Second

// NewStatusPoller is a watch of servers, whose addresses are given by name, those of replicas with
// commas between them.
func NewStatusPoller(servers map[string]string, with ...Option) *StatusPoller {
	w := &StatusPoller{replicas: make(map[string][]*Client), patience: watchPatience, with: with}
	for name, addrs := range servers {
		w.SetAddr(name, addrs)
	}
	return w
}

// SetAddr has the watch ask a server at other addresses from now on.
func (w *StatusPoller) SetAddr(name, addrs string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, replica := range w.replicas[name] {
		replica.Close()
	}
	var replicas []*Client
	for addr := range strings.SplitSeq(addrs, ",") {
		replicas = append(replicas, New(addr, w.with...))
	}
	w.replicas[name] = replicas
}

func (w *StatusPoller) servers() map[string][]*Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.replicas)
}

// Statuses is what each replica says, by server; where one leads, it is the first. Those that do
// not answer in time are left out.
func (w *StatusPoller) Statuses(ctx context.Context) map[string][]protocol.Status {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	var asked sync.WaitGroup
	var mu sync.Mutex
	all := make(map[string][]protocol.Status)
	for name, replicas := range w.servers() {
		for _, replica := range replicas {
			asked.Go(func() {
				s, err := replica.Status(ctx)
				if err != nil || s.Name != name {
					return // out of reach, or another server has its address
				}
				mu.Lock()
				defer mu.Unlock()
				if s.Group != nil && s.Group.Leader == s.Group.Self.ID {
					all[name] = append([]protocol.Status{s}, all[name]...)
				} else {
					all[name] = append(all[name], s)
				}
			})
		}
	}
	asked.Wait()
	return all
}

// Close closes connections that nobody uses.
func (w *StatusPoller) Close() {
	for _, replicas := range w.servers() {
		for _, replica := range replicas {
			replica.Close()
		}
	}
}
