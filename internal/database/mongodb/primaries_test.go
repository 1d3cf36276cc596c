package mongodb

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// Primaries step down and are killed with SIGKILL, in turn, while rows are written: writes acknowledged by a majority
// survive. With w: 1 rows may be lost; the log has their number. SKERRY_CHANGES=20 makes the long form.
func TestKilledPrimariesKeepMajorityWrites(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	changes := 2
	if n, err := strconv.Atoi(os.Getenv("SKERRY_CHANGES")); err == nil {
		changes = n
	}
	for _, concern := range []string{"majority", "1"} {
		t.Run("w "+concern, func(t *testing.T) {
			account := losePrimaries(t, concern, changes)
			t.Logf("%d primaries were lost: %+v", changes, account)
			if err := account.Err(); err != nil && concern == "majority" {
				t.Error(err)
			}
			if account.Writes == 0 {
				t.Error("no write was acknowledged")
			}
		})
	}
}

// losePrimaries returns the outcomes of the rows.
func losePrimaries(t *testing.T, concern string, changes int) dbtest.WriteCounts {
	t.Helper()
	db := New()
	c := dbtest.Start(t, db, database.Env{
		Nodes: testhost.Loopback(t, 3), Options: database.Options{"write_concern": concern, "election_timeout": "2s"},
	}).(*cluster)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(changes)*formTimeout)
	defer cancel()
	open := func(ctx context.Context) (load.Client, error) { return db.Open(ctx, c.Properties()) }
	ledger := dbtest.NewLedger("p")
	stop, err := dbtest.StartWriters(ctx, ledger, open, 4, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range changes {
		if err := c.losePrimary(ctx, i%2 == 0); err != nil {
			t.Fatalf("primary %d: %v, %v", i+1, err, stop())
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		t.Fatal(err)
	}
	account, err := ledger.Check(ctx, open, 4)
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// losePrimary returns when another member is primary and all serve.
func (c *cluster) losePrimary(ctx context.Context, kill bool) error {
	lost, err := c.awaitPrimary(ctx)
	if err != nil {
		return err
	}
	if kill {
		err = c.Halt(ctx, lost.host, database.Abrupt)
	} else {
		// Short, so that one of three members can be elected at any time.
		err = command(ctx, lost.admin, bson.D{{Key: "replSetStepDown", Value: 5}, {Key: "secondaryCatchUpPeriodSecs", Value: 2}}, nil)
	}
	if err != nil {
		return err
	}
	if err := c.Servers.Await(ctx, func(ctx context.Context) error {
		primary, err := c.findPrimary(ctx)
		if err == nil && primary == lost {
			err = fmt.Errorf("%w: %s is still primary", database.ErrNotReady, lost.host.Name())
		}
		return err
	}); err != nil {
		return err
	}
	if kill {
		if err := c.Revive(ctx, lost.host); err != nil {
			return err
		}
	}
	return c.Servers.Await(ctx, c.Ready)
}
