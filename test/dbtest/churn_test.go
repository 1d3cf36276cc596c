package dbtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

// memory is an in-memory database with configurable faults.
type memory struct {
	database.Cluster // other methods are not called

	mu      sync.Mutex
	rows    map[string]string
	members map[string]bool
	steps   []string
	// fixed may not leave; drop loses a row at each leave; forget reverts an update.
	fixed        string
	drop, forget bool
	fail         error // returned by every third write
	n            int
}

func newMemory(members ...string) *memory {
	m := &memory{rows: map[string]string{}, members: map[string]bool{}}
	for _, name := range members {
		m.members[name] = true
	}
	return m
}

func (m *memory) Join(_ context.Context, h host.Host) (database.Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.members[h.Name()] {
		return database.Change{}, database.ErrMember
	}
	m.members[h.Name()] = true
	m.steps = append(m.steps, "+"+h.Name())
	return database.Change{Accepted: 1, Complete: 2}, nil
}

func (m *memory) Leave(_ context.Context, h host.Host, manner database.Manner) (database.Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.Name() == m.fixed {
		return database.Change{}, fmt.Errorf("%s: %w", h.Name(), database.ErrFixed)
	}
	if !m.members[h.Name()] {
		return database.Change{}, database.ErrNotMember
	}
	delete(m.members, h.Name())
	m.steps = append(m.steps, "-"+h.Name()+manner.String()[:1])
	for key := range m.rows {
		if m.drop {
			delete(m.rows, key)
			break
		}
		if m.forget && m.rows[key] != "1" {
			m.rows[key] = "1"
			break
		}
	}
	return database.Change{}, nil
}

type client struct {
	load.Client
	m *memory
}

func (m *memory) open(context.Context) (load.Client, error) { return client{m: m}, nil }

func (c client) write(key string, values []load.Field) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.m.n++; c.m.fail != nil && c.m.n%3 == 0 {
		return c.m.fail
	}
	c.m.rows[key] = string(values[0].Value)
	return nil
}

func (c client) Insert(_ context.Context, _, key string, values []load.Field) error {
	return c.write(key, values)
}

func (c client) Update(_ context.Context, _, key string, values []load.Field) error {
	return c.write(key, values)
}

func (c client) Read(_ context.Context, _, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	v, ok := c.m.rows[key]
	if !ok {
		return nil, load.ErrNotFound
	}
	return append(dst, load.Field{Name: fields[0], Value: []byte(v)}), nil
}

func (client) Close() error { return nil }

// written returns a ledger with a number of writes.
func written(t *testing.T, m *memory, n int) *Ledger {
	t.Helper()
	l := NewLedger("t")
	for i := range n {
		_ = l.Write(t.Context(), client{m: m}, i) // the ledger records failures
	}
	return l
}

func TestLedger(t *testing.T) {
	for name, test := range map[string]struct {
		fail            error
		failed, inDoubt int64
		harm            func(rows map[string]string)
		lost, stale     int64
	}{
		"nothing wrong":   {},
		"writes refused":  {fail: load.Failed("oom", "n1", errors.New("no memory")), failed: 20},
		"writes in doubt": {fail: load.Unknown("timeout", "n1", errors.New("late")), inDoubt: 20},
		"a row is lost": {harm: func(rows map[string]string) {
			for key := range rows {
				delete(rows, key)
				return
			}
		}, lost: 1},
		"an update is lost": {harm: func(rows map[string]string) {
			for key, version := range rows {
				if version != "1" {
					rows[key] = "1"
					return
				}
			}
		}, stale: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a missing row is read repeatedly for a while
			m := newMemory()
			m.fail = test.fail
			l := written(t, m, 60)
			if test.harm != nil {
				test.harm(m.rows)
			}
			a, err := l.Check(t.Context(), m.open, 3)
			if err != nil {
				t.Fatal(err)
			}
			if a.Failed != test.failed || a.InDoubt != test.inDoubt || a.Lost != test.lost || a.Stale != test.stale || a.Writes != 60-test.failed-test.inDoubt {
				t.Errorf("account %+v", a)
			}
			least, most := l.Rows()
			if least != a.Rows || most < least || a.Rows == 0 {
				t.Errorf("%d to %d rows, account %+v", least, most, a)
			}
			if lost := test.lost + test.stale; errors.Is(a.Err(), ErrLost) != (lost > 0) || int64(len(a.Examples)) != lost {
				t.Errorf("error %v, examples %v", a.Err(), a.Examples)
			}
		})
	}
}

func plan(nodes []host.Host, seed uint64, changes int) ChurnPlan {
	return ChurnPlan{Changes: changes, Seed: seed, Nodes: nodes, Members: []string{"n1", "n2", "n3"}, Least: 2,
		Fixed: map[string]string{"n1": "it has the only copy of the keys"}, Abrupt: true, Writers: 2, Rate: 1000, Timeout: time.Minute}
}

func TestRandomChanges(t *testing.T) {
	nodes := testhost.Loopback(t, 5)
	var first string
	for range 2 {
		m := newMemory("n1", "n2", "n3")
		m.fixed = "n2"
		r, err := RunChurn(t.Context(), m, m.open, plan(nodes, 7, 30))
		if err != nil || len(r.Steps) != 30 || r.Seed != 7 {
			t.Fatalf("%+v, %v", r, err)
		}
		steps := strings.Join(m.steps, " ")
		if strings.Contains(steps, "-n1") || !strings.Contains(steps, "+") || !strings.Contains(steps, "a") || !strings.Contains(steps, "g") {
			t.Errorf("steps %s: want joins, graceful and abrupt leaves, but none of n1", steps)
		}
		if first != "" && steps != first {
			t.Errorf("the same seed gives different steps: %s and %s", first, steps)
		}
		first = steps
	}
	m := newMemory("n1", "n2", "n3")
	if _, err := RunChurn(t.Context(), m, m.open, plan(nodes[:1], 1, 1)); !errors.Is(err, ErrNoChange) {
		t.Errorf("a cluster without possible changes: error %v", err)
	}
}

func TestLostRowsAreDetected(t *testing.T) {
	for name, m := range map[string]*memory{"rows": {drop: true}, "updates": {forget: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.rows, m.members = map[string]string{}, map[string]bool{"n1": true, "n2": true, "n3": true}
			ledger := written(t, m, 200)
			nodes := testhost.Loopback(t, 3)
			steps, err := plan(nodes, 3, 1).Apply(t.Context(), m)
			if err != nil || len(steps) != 1 || steps[0].Join {
				t.Fatalf("%v, %v", steps, err)
			}
			a, err := ledger.Check(t.Context(), m.open, 2)
			if err != nil || !errors.Is(a.Err(), ErrLost) {
				t.Errorf("account %+v, %v", a, err)
			}
		})
	}
}
