package hydrabench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
	"skerry/internal/system/hydra/deploy"
	"skerry/internal/system/hydra/hydraclient"
)

// series measures writes, reads and mixes with every number of workers.
func (w *world) series(ctx context.Context, j job, ops ...string) error {
	fill := j
	fill.Op, fill.Workers, fill.Keys, fill.Payload = opFill, loadWorkers, keys, payload
	if j.System == systemHydra || j.System == systemDirect {
		if err := w.run(ctx, w.near(), fill); err != nil {
			return err
		}
	}
	for _, op := range ops {
		for _, n := range w.Workers {
			if op == opMix && n < 2 {
				continue
			}
			one := j
			one.Op, one.Workers, one.Keys, one.Payload, one.Seconds = op, n, keys, payload, w.Time.Seconds()
			for range w.repeats(op, n) {
				if err := w.run(ctx, w.near(), one); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// repeats is how often a measurement is made: once where the table does not ask for it.
func (w *world) repeats(op string, workers int) int {
	if op == opMix || workers != 1 && !slices.Contains(comparedWorkers, workers) {
		return 1
	}
	return max(1, w.Repeats)
}

// throughRaft measures Hydra, from the cloud of its leader.
func (w *world) throughRaft(ctx context.Context) error {
	return w.deployed(ctx, deploy.Options{}, func(d *deploy.Deployment, c *hydraclient.Client) error {
		at, err := w.endpoints(ctx, c)
		if err != nil {
			return err
		}
		if err := w.series(ctx, job{System: systemHydra, Endpoints: at}, opWrite, opRead, opMix); err != nil || w.scale != 0 || !slices.Contains(w.Workers, 1) {
			return err
		}
		return w.applied(ctx)
	})
}

// applied asks each member that has a database for writes, one after the other, that are answered
// when they are in it: members that lead or do not, and apply or follow.
func (w *world) applied(ctx context.Context) error {
	for _, c := range w.layout.Clouds {
		for _, h := range c.Members {
			j := job{System: systemHydra, Op: opApply, Endpoints: []string{deploy.Join(h, deploy.PortAPI)}, At: h.Name(), Workers: 1, Keys: keys, Payload: payload, Seconds: w.Time.Seconds()}
			if err := w.run(ctx, w.near(), j); err != nil {
				return err
			}
		}
	}
	return nil
}

// pastRaft measures one cloud's database behind the same interface, and nothing else.
func (w *world) pastRaft(ctx context.Context) (err error) {
	if err := w.clear(ctx); err != nil {
		return err
	}
	h := w.layout.Clouds[0].Members[0]
	var set daemon.Set
	defer func() { err = errors.Join(err, set.Stop(context.WithoutCancel(ctx))) }()
	s, err := set.Start(ctx, h, daemon.Spec{Ports: []int{deploy.PortAPI}, Command: host.Command{
		Name: "direct", Path: w.Exe, Log: filepath.Join(h.Dir(), "direct.log"),
		Args: []string{
			"hydra", "node", "--direct", "--insecure", "--cluster", "direct", "--name", "direct", "--cloud", w.layout.Clouds[0].Name,
			"--data", filepath.Join(h.Dir(), "data"), "--listen", deploy.Join(h, deploy.PortAPI),
		},
	}})
	if err != nil {
		return err
	}
	at := []string{deploy.Join(h, deploy.PortAPI)}
	c, err := hydraclient.New(hydraclient.Config{Endpoints: at, Timeout: opTimeout, Dial: w.near().Dial})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := s.Await(ctx, readyTimeout, func(ctx context.Context) error { return c.CreateTable(ctx, benchTable) }); err != nil {
		return err
	}
	return w.series(ctx, job{System: systemDirect, Endpoints: at}, opWrite, opRead, opMix)
}

// etcd measures writes to etcd with a member in each place, from the cloud of its leader; and, of one
// worker without distance, where the processors bound what members share, with a member wherever
// Hydra has one.
func (w *world) etcd(ctx context.Context) error {
	if w.Etcd == nil {
		return errors.New("etcd is not installed")
	}
	a, b := w.layout.Clouds[0].Members, w.layout.Clouds[1].Members
	err := w.etcdOn(ctx, systemEtcd, a[0], b[0], w.layout.Witness)
	if err != nil || w.scale != 0 || !slices.Contains(w.Workers, 1) {
		return err
	}
	alone := *w
	alone.Workers = []int{1}
	err = alone.etcdOn(ctx, systemEtcd5, append(slices.Concat(a, b), w.layout.Witness)...)
	w.scene = alone.scene
	return err
}

func (w *world) etcdOn(ctx context.Context, system string, nodes ...host.Host) (err error) {
	cluster, err := w.Etcd.Start(ctx, database.Env{Nodes: nodes, Control: w.near(), Installation: w.EtcdInstallation, RTT: rttOf(w.scene.RTT), Progress: w.Progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop(context.WithoutCancel(ctx))) }()
	var at []string
	for _, value := range cluster.Properties() {
		for e := range strings.SplitSeq(value, ",") {
			if strings.Contains(e, nodes[0].Addr()) {
				at = append([]string{e}, at...)
			} else if strings.Contains(e, ":") {
				at = append(at, e)
			}
		}
	}
	if len(at) != len(nodes) {
		return fmt.Errorf("etcd has %d members of %d", len(at), len(nodes))
	}
	return w.series(ctx, job{System: system, Endpoints: at}, opWrite)
}
