package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
	"skerry/internal/machine/network"
	"skerry/internal/machine/statedir"
	"skerry/internal/machine/volume"
)

// Make implements machine.Nodes.
func (p *part) Make(ctx context.Context, nodes []machine.Node) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		made := node{Node: n, Dir: filepath.Join(p.record.Data, n.Name), Netns: p.place.Namespace(n.Name)}
		if p.ask.Whole {
			made.Netns = netns.OwnPath
		}
		p.record.Nodes = append(p.record.Nodes, made)
	}
	if err := p.wholly(); err != nil {
		return err
	}
	group, err := p.controlGroup()
	if err != nil {
		return err
	}
	if err := p.directories(); err != nil {
		return err
	}
	if err := p.Name(ctx, nil); err != nil {
		return err
	}
	if err := p.mountVolumes(); err != nil {
		return err
	}
	if err := p.space(ctx); err != nil {
		return err
	}
	if err := p.show(); err != nil {
		return err
	}
	p.attachNodes(group)
	return nil
}

// directories makes those of the nodes.
func (p *part) directories() error {
	var err error
	for range statedir.Tries {
		if err = statedir.Own(filepath.Dir(p.record.Data)); err == nil {
			err = os.Mkdir(p.record.Data, 0o755)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Symlink(p.place.Dir(), filepath.Join(p.record.Data, statedir.Mark)); err != nil {
		return fmt.Errorf("mark data directory: %w", err)
	}
	for _, n := range p.record.Nodes {
		if err := os.Mkdir(n.Dir, 0o755); err != nil {
			return fmt.Errorf("make directory of node: %w", err)
		}
	}
	return nil
}

// volumesDir holds what volumes consist of. No node's name begins with a dot.
const volumesDir = ".volumes"

// mountVolumes puts the directories of nodes on their volumes.
func (p *part) mountVolumes() error {
	shared := false
	for _, n := range p.record.Nodes {
		if !n.Volume.Enabled() {
			continue
		}
		// Processes of other labs have copies of the machine's mounts. Below a shared one, what
		// is unmounted here goes there too, and with it the loop device.
		if !shared {
			if err := network.Share(p.record.Data); err != nil {
				return fmt.Errorf("mount place of volumes: %w", err)
			}
			shared = true
		}
		if err := volume.Mount(n.Volume, n.Dir, filepath.Join(p.record.Data, volumesDir, n.Name)); err != nil {
			return err
		}
	}
	return nil
}
