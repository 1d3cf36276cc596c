package hydrabench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/machine/host"
	"skerry/internal/system/hydra/api"
	"skerry/internal/system/hydra/deploy"
	"skerry/internal/system/hydra/hydraclient"
)

const (
	// calm is for how long clients write before anything is lost.
	calm = 2 * time.Second
	// grief is for how long they write after that: longer than any loss that is to be called
	// overcome.
	grief = 8 * time.Second
	// watchers write while something is lost.
	watchers = 4
)

func rttOf(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// losses kills the leader, and takes a cloud away, while clients write.
func (w *world) losses(ctx context.Context) error {
	return w.deployed(ctx, deploy.Options{}, func(d *deploy.Deployment, c *hydraclient.Client) error {
		for range w.Trials {
			if err := w.loseLeader(ctx, d, c); err != nil {
				return fmt.Errorf("the leader's loss: %w", err)
			}
		}
		for range w.Trials {
			if err := w.loseCloud(ctx, d, c); err != nil {
				return fmt.Errorf("a cloud's loss: %w", err)
			}
		}
		return nil
	})
}

// watch has clients write, something be lost, and returns what they saw of it.
func (w *world) watch(ctx context.Context, node host.Host, j job, lose func() error) (Loss, error) {
	j.Op, j.Workers, j.Keys, j.Payload = opWatch, watchers, keys, payload
	a, err := startAgent(ctx, node, w.Exe, j)
	if err != nil {
		return Loss{}, err
	}
	if err := linger.For(ctx, calm); err != nil {
		return Loss{}, errors.Join(err, a.Kill())
	}
	lost := time.Now()
	if err := lose(); err != nil {
		return Loss{}, errors.Join(err, a.Kill())
	}
	if err := linger.For(ctx, grief); err != nil {
		return Loss{}, errors.Join(err, a.Kill())
	}
	got, err := a.End(ctx)
	if err != nil {
		return Loss{}, err
	}
	return judge(got.Seen, lost)
}

// judge finds the first write that began after the loss and ended well.
func judge(seen []try, lost time.Time) (Loss, error) {
	l := Loss{Seconds: -1}
	before := false
	for _, t := range seen {
		after := t.Begin >= lost.UnixNano()
		before = before || t.OK && !after
		if !t.OK {
			l.Failed++
			continue
		}
		if s := float64(t.End-lost.UnixNano()) / 1e9; after && (l.Seconds < 0 || s < l.Seconds) {
			l.Seconds = s
		}
	}
	switch {
	case !before:
		return l, errors.New("nothing was written before the loss")
	case l.Seconds < 0:
		return l, errors.New("nothing was written after the loss")
	}
	return l, nil
}

func (w *world) loseLeader(ctx context.Context, d *deploy.Deployment, c *hydraclient.Client) error {
	leader, err := w.settled(ctx, c)
	if err != nil {
		return err
	}
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	is := func(s deploy.Service) bool { return s.Name == leader }
	var at []string
	for _, cloud := range w.layout.Clouds {
		for _, h := range cloud.Members {
			if h.Name() != leader {
				at = append(at, deploy.Join(h, deploy.PortAPI))
			}
		}
	}
	// The client's first choice is a member that stays: what is measured is the election.
	loss, err := w.watch(ctx, w.near(), job{System: systemHydra, Endpoints: at}, func() error { return d.Kill(is) })
	if err != nil {
		return err
	}
	loss.Election = s.ElectionMS
	w.scene.Leader = append(w.scene.Leader, loss)
	w.Progress(fmt.Sprintf("leader killed: first write after %.2f s", loss.Seconds))
	return errors.Join(d.Revive(ctx, is), w.caughtUp(ctx, c))
}

// loseCloud has nothing reach the first cloud or leave it; the clients are elsewhere.
func (w *world) loseCloud(ctx context.Context, d *deploy.Deployment, c *hydraclient.Client) error {
	if _, err := w.settled(ctx, c); err != nil {
		return err
	}
	name := w.layout.Clouds[0].Name
	var cut, back []link.Change
	sites := map[string]string{}
	for _, h := range w.lab.Hosts() {
		sites[h.Name()] = h.Site()
	}
	for _, l := range w.lab.Links() {
		if (sites[l.A] == name) != (sites[l.B] == name) {
			ab, ba := l.AB, l.BA
			back = append(back, link.Change{ID: l.ID, AB: &ab, BA: &ba})
			downAB, downBA := ab, ba
			downAB.Down, downBA.Down = true, true
			cut = append(cut, link.Change{ID: l.ID, AB: &downAB, BA: &downBA})
		}
	}
	j := job{System: systemHydra, DNS: deploy.Join(w.layout.Names, deploy.PortDNS), Zone: zoneName}
	loss, err := w.watch(ctx, w.layout.Names, j, func() error { return w.lab.Set(ctx, cut) })
	restored := w.lab.Set(context.WithoutCancel(ctx), back)
	if err = errors.Join(err, restored); err != nil {
		return err
	}
	w.scene.Cloud = append(w.scene.Cloud, loss)
	w.Progress(fmt.Sprintf("cloud lost: first write after %.2f s", loss.Seconds))
	return w.caughtUp(ctx, c)
}

// caughtUp waits until every cloud's database serves and lacks little.
func (w *world) caughtUp(ctx context.Context, c *hydraclient.Client) error {
	return await(ctx, "every database has caught up", func() (bool, error) {
		s, err := c.Status(ctx)
		if err != nil {
			return false, err
		}
		for _, db := range s.Databases {
			if db.State != api.StateServing || db.Lag > lagAllowed {
				return false, fmt.Errorf("%s is %s and lacks %d entries", db.Cloud, db.State, db.Lag)
			}
		}
		return len(s.Databases) == len(w.layout.Clouds), nil
	})
}

// lagAllowed are the entries that a database may lack that counts as caught up: what is
// under way.
const lagAllowed = 1000
