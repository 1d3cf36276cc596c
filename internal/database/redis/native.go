package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// nativeSince is the first major version of Valkey that migrates slots itself.
const nativeSince = 9

// errNotNative means that the server has no built-in slot migration.
var errNotNative = errors.New("rebalance: native needs Valkey 9 or newer")

// resolveRebalance chooses the mover of a version: the server's own where it has one, unless the options choose another.
func (k kind) resolveRebalance(chosen, version string) (string, error) {
	native := k.name == Valkey && major(version) >= nativeSince
	switch {
	case chosen == rebalanceNative && !native:
		return "", fmt.Errorf("%w: this is %s %s", errNotNative, k.name, version)
	case chosen != "":
		return chosen, nil
	case native:
		return rebalanceNative, nil
	}
	return rebalancePipelined, nil
}

// migration is a job of a server that exports slots, as CLUSTER GETSLOTMIGRATIONS reports it.
type migration struct{ state, message string }

// States in which a migration ends. All others are steps of one that runs.
const (
	migrationSuccess   = "success"
	migrationFailed    = "failed"
	migrationCancelled = "cancelled"
)

// migrateNatively has each source migrate its slots itself, with one CLUSTER MIGRATESLOTS for all targets. The source
// sends a snapshot of the slots and then their changes, pauses its writes while the last change is in flight, and the
// target claims all slots of the job at once. The end of a job is what the source reports about it.
func (c *cluster) migrateNatively(ctx context.Context, masters []view, plan []transfer) error {
	if err := c.awaitEpochs(ctx); err != nil {
		return err
	}
	bySource := make(map[int][]transfer)
	for _, t := range plan {
		bySource[t.from] = append(bySource[t.from], t)
	}
	g, gctx := errgroup.WithContext(ctx)
	for from, transfers := range bySource {
		g.Go(func() error {
			if err := migrateFrom(gctx, masters[from], masters, transfers); err != nil {
				return fmt.Errorf("migrating slots of %s: %w", masters[from].host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// migrateFrom starts the jobs of a source and waits until the source reports their success. It cancels them after an error.
func migrateFrom(ctx context.Context, from view, masters []view, transfers []transfer) error {
	client := from.openChanger(from.host)
	defer client.Close()
	earlier, err := readMigrations(ctx, client)
	if err != nil {
		return err
	}
	args := []any{"CLUSTER", "MIGRATESLOTS"}
	for _, t := range transfers {
		args = append(args, "SLOTSRANGE")
		for _, r := range joinSlots(t.slots) {
			args = append(args, r.from, r.to)
		}
		args = append(args, "NODE", masters[t.to].self.id)
	}
	if err := client.Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("starting the migration: %w", err)
	}
	if err := awaitMigrations(ctx, client, earlier); err != nil {
		return errors.Join(err, cancelMigrations(context.WithoutCancel(ctx), client))
	}
	return nil
}

// awaitMigrations waits until all jobs that are not among the earlier ones have succeeded.
func awaitMigrations(ctx context.Context, client *goredis.Client, earlier map[string]migration) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		now, err := readMigrations(ctx, client)
		if err != nil {
			return err
		}
		running := 0
		for name, m := range now {
			_, old := earlier[name]
			switch {
			case old || m.state == migrationSuccess:
			case m.state == migrationFailed || m.state == migrationCancelled:
				return fmt.Errorf("migration %s: %s: %s", name, m.state, m.message)
			default:
				running++
			}
		}
		if running == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readMigrations returns the exporting jobs of a server by name: those that run and the log of those that ended.
func readMigrations(ctx context.Context, client *goredis.Client) (map[string]migration, error) {
	reply, err := client.Do(ctx, "CLUSTER", "GETSLOTMIGRATIONS").Slice()
	if err != nil {
		return nil, fmt.Errorf("querying migrations: %w", err)
	}
	jobs := make(map[string]migration)
	for _, r := range reply {
		f, err := parseReplyFields(r)
		if err != nil {
			return nil, fmt.Errorf("querying migrations: %w", err)
		}
		if f["operation"] == "EXPORT" {
			jobs[f["name"]] = migration{state: f["state"], message: f["message"]}
		}
	}
	return jobs, nil
}

// parseReplyFields returns the text fields of a map, or of a list of names and values.
func parseReplyFields(reply any) (map[string]string, error) {
	fields := make(map[string]string)
	switch r := reply.(type) {
	case map[any]any:
		for k, v := range r {
			fields[fmt.Sprint(k)] = fmt.Sprint(v)
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			fields[fmt.Sprint(r[i])] = fmt.Sprint(r[i+1])
		}
	}
	if fields["name"] == "" || fields["state"] == "" {
		return nil, fmt.Errorf("migration without name or state: %v", reply)
	}
	return fields, nil
}

// cancelMigrations ends the running jobs of a server. The slots stay where they are.
func cancelMigrations(ctx context.Context, client *goredis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	err := client.Do(ctx, "CLUSTER", "CANCELSLOTMIGRATIONS").Err()
	if err != nil && !strings.Contains(err.Error(), "No migrations ongoing") {
		return fmt.Errorf("cancelling the migration: %w", err)
	}
	return nil
}

// joinSlots returns ascending slots as ranges.
func joinSlots(slots []int) []slotRange {
	var ranges []slotRange
	for _, s := range slots {
		if n := len(ranges); n > 0 && ranges[n-1].to == s-1 {
			ranges[n-1].to = s
		} else {
			ranges = append(ranges, slotRange{s, s})
		}
	}
	return ranges
}
