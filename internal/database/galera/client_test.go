package galera

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit/testhost"
)

// A client is used again after the deadline of its last operation, and after the loss of its member.
func TestClientSurvivesDeadlineAndLostMember(t *testing.T) {
	nodes := testhost.Loopback(t, 2)
	g, c := startCluster(t, nodes, nil)
	p := c.Properties()
	p[mysql.PropMember], p[mysql.PropTimeout] = mysql.First, "1000"
	client := dbtest.Open(t, g, p)
	connections := func() string {
		t.Helper()
		rows, err := c.On("n1").Query(t.Context(), "SHOW GLOBAL STATUS LIKE 'Connections'")
		if err != nil {
			t.Fatal(err)
		}
		return rows[0][1]
	}
	record := []load.Field{{Name: "field0", Value: []byte("v")}}
	if err := client.Insert(t.Context(), "", "user1", record); err != nil {
		t.Fatal(err)
	}
	before := connections()
	<-time.After(1200 * time.Millisecond) // longer than the deadline and the time after which an idle connection is checked
	if err := client.Update(t.Context(), "", "user1", record); err != nil {
		t.Fatal(err)
	}
	if after := connections(); after != before {
		t.Errorf("an idle connection was replaced: %s connections, then %s", before, after)
	}
	if err := c.Halt(t.Context(), nodes[0], database.Graceful); err != nil {
		t.Fatal(err)
	}
	<-time.After(1200 * time.Millisecond)
	if err := client.Update(t.Context(), "", "user1", record); err != nil {
		t.Errorf("after the loss of its member: %v, want a request to the next member", err)
	}
	if _, err := client.Read(t.Context(), "", "user2", nil, nil); !errors.Is(err, load.ErrNotFound) {
		t.Errorf("read of a missing record: %v", err)
	}
}

// A row is written through two members at the same time until one write fails.
func TestConflict(t *testing.T) {
	g, c := startCluster(t, testhost.Loopback(t, 2), nil)
	p := c.Properties()
	p[mysql.PropMember] = mysql.RoundRobin
	record := []load.Field{{Name: "field0", Value: []byte("v")}}
	first, second := dbtest.Open(t, g, p), dbtest.Open(t, g, p)
	if err := first.Insert(t.Context(), "", "user1", record); err != nil {
		t.Fatal(err)
	}
	if err := c.Servers.Await(t.Context(), func(ctx context.Context) error { return second.Update(ctx, "", "user1", record) }); err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5000 {
			if err := second.Update(t.Context(), "", "user1", fields(fmt.Sprint("b", i))); err != nil {
				lost <- err
				return
			}
		}
	}()
	for i, running := 0, true; running; i++ {
		select {
		case <-done:
			running = false
		default:
			// An unchanged value would not be replicated.
			if err := first.Update(t.Context(), "", "user1", fields(fmt.Sprint("a", i))); err != nil {
				select {
				case lost <- err:
				default:
				}
				<-done
				running = false
			}
		}
	}
	select {
	case err := <-lost:
		var e *load.OpError
		if !errors.As(err, &e) || e.Class != "deadlock" || e.Outcome != load.NotDone {
			t.Errorf("the loser's error: %v", err)
		}
	default:
		t.Error("no write had a conflict")
	}
}
