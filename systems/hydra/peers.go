package hydra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
)

const remotePause = 200 * time.Millisecond

const maxAnswer = 64 << 10

// remoteDatabases tracks applied indexes of other clouds while writes wait, by one long-polling request per cloud.
type remoteDatabases struct {
	node   *Node
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	clouds map[string]*remoteDatabase
}

type remoteDatabase struct {
	progress
	wake chan struct{} // a waiter arrived
}

func (r *remoteDatabases) init(n *Node) {
	r.node, r.clouds = n, make(map[string]*remoteDatabase)
	r.ctx, r.cancel = context.WithCancel(context.Background())
}

func (r *remoteDatabases) stop() {
	r.mu.Lock()
	r.cancel() // track starts nothing after this
	r.mu.Unlock()
	r.all.Wait()
}

func (r *remoteDatabases) wait(ctx context.Context, index uint64) error {
	for _, cloud := range r.node.otherClouds() {
		one, err := r.track(cloud)
		if err != nil {
			return err
		}
		select {
		case one.wake <- struct{}{}:
		default:
		}
		if err := one.wait(ctx, index); err != nil {
			return fmt.Errorf("not applied in %s yet: %w", cloud, err)
		}
	}
	return nil
}

func (n *Node) otherClouds() []string {
	var clouds []string
	seen := map[string]bool{n.Cloud: true}
	for _, m := range n.log.Members() {
		if m.Role != consensus.Witness && !seen[m.Site] {
			seen[m.Site] = true
			clouds = append(clouds, m.Site)
		}
	}
	return clouds
}

func (r *remoteDatabases) track(cloud string) (*remoteDatabase, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	one := r.clouds[cloud]
	if one == nil {
		one = &remoteDatabase{wake: make(chan struct{}, 1)}
		one.progress.init()
		r.clouds[cloud] = one
		r.all.Go(func() { r.poll(cloud, one) })
	}
	return one, nil
}

func (r *remoteDatabases) poll(cloud string, one *remoteDatabase) {
	for {
		if !one.hasWaiters() {
			select {
			case <-r.ctx.Done():
				return
			case <-one.wake:
			}
		}
		applied, err := r.node.fetchProgress(r.ctx, cloud, one.index()+1)
		if err == nil {
			one.setApplied(max(applied, one.index()))
			continue
		}
		if linger.For(r.ctx, remotePause) != nil {
			return
		}
	}
}

func (n *Node) fetchProgress(ctx context.Context, cloud string, index uint64) (uint64, error) {
	err := errors.New("no address of its members is known")
	for _, m := range n.log.Members() {
		if m.Site != cloud || m.Role == consensus.Witness {
			continue
		}
		address := n.directory.address(m.ID)
		if address == "" {
			n.readAddresses(ctx)
			if address = n.directory.address(m.ID); address == "" {
				continue
			}
		}
		var applied uint64
		if applied, err = n.requestProgress(ctx, address, index); err == nil {
			return applied, nil
		}
	}
	return 0, err
}

func (n *Node) requestProgress(ctx context.Context, address string, index uint64) (uint64, error) {
	scheme := "http"
	if n.Secure {
		scheme = "https"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*api.DefaultTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s/v1/progress?index=%d", scheme, address, index), nil)
	if err != nil {
		return 0, err
	}
	if n.Token != "" {
		r.Header.Set("Authorization", "Bearer "+n.Token)
	}
	answer, err := n.Transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answered %s", address, answer.Status)
	}
	var p api.Progress
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&p); err != nil {
		return 0, fmt.Errorf("the answer of %s: %w", address, err)
	}
	return p.Applied, nil
}

const (
	learnEvery      = 2 * time.Second
	announceTimeout = 5 * time.Second
)

// directory maps members to the addresses of their interfaces, from the configuration and from announcements in the log.
type directory struct {
	mu  sync.Mutex
	api map[uint64]string
}

func (d *directory) init(members []api.Member) {
	d.api = make(map[uint64]string)
	for _, m := range members {
		d.set(m.ID, m.API)
	}
}

func (d *directory) set(id uint64, address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if address != "" {
		d.api[id] = address
	}
}

func (d *directory) address(id uint64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.api[id]
}

type announcement struct {
	API string `json:"api"`
}

func (n *Node) announce(ctx context.Context) {
	told := n.API == ""
	for {
		if !told {
			bounded, cancel := context.WithTimeout(ctx, announceTimeout)
			told = n.announceAddress(bounded) == nil
			cancel()
		}
		n.readAddresses(ctx)
		wait := learnEvery
		if !told {
			wait = retryLeast
		}
		if linger.For(ctx, wait) != nil {
			return
		}
	}
}

func (n *Node) announceAddress(ctx context.Context) error {
	self := n.log.Self()
	n.directory.set(self.ID, n.API)
	key := strconv.FormatUint(self.ID, 10)
	value, err := json.Marshal(announcement{n.API})
	if err != nil {
		return err
	}
	if n.store != nil {
		if _, err := n.awaitLinearizable(ctx); err != nil {
			return err
		}
		if row, err := n.store.Get(ctx, cloudsql.MembersTable, key, 0); err == nil && string(row.Value) == string(value) {
			return nil
		}
	}
	t := command.Transaction{Writes: []command.Write{
		{Do: command.CreateTable, Table: cloudsql.MembersTable},
		{Do: command.Put, Table: cloudsql.MembersTable, Key: key, Value: value},
	}}
	_, err = n.log.Propose(ctx, t.Append(nil))
	return err
}

func (n *Node) readAddresses(ctx context.Context) {
	if n.store == nil || !n.store.HasTable(cloudsql.MembersTable) {
		return
	}
	_ = n.store.Scan(ctx, cloudsql.MembersTable, cloudsql.Range{}, func(r cloudsql.Row) error { // retried at the next interval
		var a announcement
		if id, err := strconv.ParseUint(r.Key, 10, 64); err == nil && json.Unmarshal(r.Value, &a) == nil {
			n.directory.set(id, a.API)
		}
		return nil
	})
}

func (n *Node) listMembers() []api.Member {
	var list []api.Member
	for _, s := range n.log.Status().Members {
		list = append(list, api.Member{
			ID: s.ID, Name: s.Name, Cloud: s.Site, Peer: s.Addr, API: n.directory.address(s.ID),
			Witness: s.Role == consensus.Witness, Learner: !s.Votes,
		})
	}
	return list
}

// findSubstitute returns a member of another cloud that can answer: the leader, else any reachable one.
func (n *Node) findSubstitute() (found api.Member, ok bool) {
	s := n.log.Status()
	for _, m := range s.Members {
		address := n.directory.address(m.ID)
		if m.Site == n.Cloud && n.store != nil || m.Role == consensus.Witness || address == "" || !m.Connected || m.ID == s.Self.ID {
			continue
		}
		found, ok = api.Member{ID: m.ID, Name: m.Name, Cloud: m.Site, API: address}, true
		if m.ID == s.Leader {
			break
		}
	}
	return found, ok
}
