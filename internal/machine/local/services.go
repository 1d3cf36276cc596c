package local

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"skerry/internal/machine"
	"skerry/internal/machine/container"
	"skerry/internal/machine/network"
)

// bridging is how many nodes' networks of containers are made at a time.
const bridging = 8

// MTU implements machine.Services.
func (p *part) MTU(context.Context) (int, error) {
	least := 0
	for _, n := range p.nodesMade() {
		mtu, err := network.MTU(n.Netns)
		if err != nil {
			return 0, err
		}
		if mtu > 0 && (least == 0 || mtu < least) {
			least = mtu
		}
	}
	return least, nil
}

// Bridge implements machine.Services.
func (p *part) Bridge(ctx context.Context, bridges []machine.Bridge) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bridging)
	for _, b := range bridges {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			at, err := p.network(b.Node)
			if err == nil {
				err = container.Node{Node: at, Space: p.place.Container(b.Node), TCP: p.ask.TCP}.Bridge(b)
			}
			if err != nil {
				return fmt.Errorf("node %s: %w", b.Node, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// Rule implements machine.Services.
func (p *part) Rule(_ context.Context, rules []machine.Rules) error {
	for _, r := range rules {
		n, err := p.nodeMade(r.Node)
		if err != nil {
			return err
		}
		space := n.Netns
		if r.Container {
			space = p.place.Container(r.Node)
		}
		if err := container.Rule(space, r); err != nil {
			return fmt.Errorf("node %s: %w", r.Node, err)
		}
	}
	return nil
}
