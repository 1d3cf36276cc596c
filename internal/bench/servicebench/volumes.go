package servicebench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"skerry/internal/lab"
	"skerry/internal/machine/host"
	"skerry/internal/machine/volume"
	"skerry/internal/topology"
)

// disk is a node whose directory is on a volume.
type disk struct {
	kind string
	lab  *lab.Lab
	node host.Host
	// Values of each round.
	p50, p99, write, read []float64
	skipped               string
}

// spare is what a loop volume holds beyond what is written to it, in bytes.
const spare = 256 << 20

func (o Options) volumes(ctx context.Context, r *Result) (err error) {
	var disks []*disk
	defer func() {
		for _, d := range disks {
			if d.lab != nil {
				err = errors.Join(err, d.lab.Down(context.WithoutCancel(ctx)))
			}
		}
	}()
	for _, kind := range withNone(o.Volumes) {
		d := &disk{kind: kind}
		disks = append(disks, d)
		if err := o.mount(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if err := o.rounds(len(disks), func(round, i int) error {
		d := disks[i]
		if d.skipped != "" {
			return nil
		}
		o.Progress(fmt.Sprintf("round %d of %d: volume %s", round+1, o.Rounds, d.kind))
		s, err := volume.Measure(ctx, d.node.Dir(), o.Effort)
		if err != nil {
			return fmt.Errorf("%s: %w", d.kind, err)
		}
		d.p50, d.p99 = append(d.p50, micros(s.SyncP50)), append(d.p99, micros(s.SyncP99))
		d.write, d.read = append(d.write, s.Write/1e6), append(d.read, s.Read/1e6)
		return nil
	}); err != nil {
		return err
	}
	for _, d := range disks {
		r.Volumes = append(r.Volumes, Volume{Kind: d.kind, SyncP50: figure(d.p50), SyncP99: figure(d.p99),
			Write: figure(d.write), Read: figure(d.read), Skipped: d.skipped})
	}
	return nil
}

// mount brings a lab of one node up whose directory is on the volume. What this machine
// cannot give is skipped.
func (o Options) mount(ctx context.Context, d *disk) error {
	spec := topology.Spec{Sites: []topology.SiteSpec{{Name: "site"}}}
	cloud, err := spec.Build(".", os.ReadFile)
	if err != nil {
		return err
	}
	cloud.Volume = topology.Volume{Kind: d.kind, Size: o.Effort.Bytes + spare}
	d.lab, err = lab.Up(ctx, lab.Config{Name: name("volume-" + d.kind), Topology: cloud, Scale: 1, Engine: o.Engine, Exe: o.Exe, Ephemeral: true})
	if errors.Is(err, volume.ErrNoLoop) || errors.Is(err, volume.ErrNoMkfs) || errors.Is(err, volume.ErrNoOverlay) {
		d.lab, d.skipped = nil, err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	d.node = d.lab.Hosts()[0]
	return nil
}
