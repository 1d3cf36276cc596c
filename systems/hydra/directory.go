package hydra

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
)

const (
	// learnEvery is how often the addresses of members' interfaces are read.
	learnEvery = 2 * time.Second
	// announceTimeout bounds one try to tell one's own.
	announceTimeout = 5 * time.Second
)

// directory is where members' interfaces are reached: what the configuration says, and
// what members have told through the log.
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

func (d *directory) of(id uint64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.api[id]
}

// announced is a row of store.MembersTable.
type announced struct {
	API string `json:"api"`
}

// announce tells the others where this member's interface is, and learns where theirs are.
func (n *Node) announce(ctx context.Context) {
	told := n.API == ""
	for {
		if !told {
			bounded, cancel := context.WithTimeout(ctx, announceTimeout)
			told = n.tell(bounded) == nil
			cancel()
		}
		n.learn(ctx)
		wait := learnEvery
		if !told {
			wait = retryLeast
		}
		if linger.For(ctx, wait) != nil {
			return
		}
	}
}

// tell writes this member's address, unless it stands there.
func (n *Node) tell(ctx context.Context) error {
	self := n.log.Self()
	n.directory.set(self.ID, n.API)
	key := strconv.FormatUint(self.ID, 10)
	value, err := json.Marshal(announced{n.API})
	if err != nil {
		return err
	}
	if n.store != nil {
		if _, err := n.linearizable(ctx); err != nil {
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

// learn reads what the others have told.
func (n *Node) learn(ctx context.Context) {
	if n.store == nil || !n.store.Has(cloudsql.MembersTable) {
		return
	}
	_ = n.store.Scan(ctx, cloudsql.MembersTable, cloudsql.Range{}, func(r cloudsql.Row) error { // read again soon
		var a announced
		if id, err := strconv.ParseUint(r.Key, 10, 64); err == nil && json.Unmarshal(r.Value, &a) == nil {
			n.directory.set(id, a.API)
		}
		return nil
	})
}

// members are the members with all that is known of them.
func (n *Node) members() []api.Member {
	var list []api.Member
	for _, s := range n.log.Status().Members {
		list = append(list, api.Member{
			ID: s.ID, Name: s.Name, Cloud: s.Site, Peer: s.Addr, API: n.directory.of(s.ID),
			Witness: s.Role == consensus.Witness, Learner: !s.Votes,
		})
	}
	return list
}

// other is a member of another cloud that can answer: the leader, else any in reach.
func (n *Node) other() (found api.Member, ok bool) {
	s := n.log.Status()
	for _, m := range s.Members {
		address := n.directory.of(m.ID)
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
