package lab

import (
	"fmt"

	"skerry/internal/machine"
	"skerry/internal/topology"
)

// End is a node at one end of a link, to measure the link from.
type End struct {
	machine.Inside
	addr string
}

// Addr is the address that the other end reaches this one by over that link.
func (e *End) Addr() string { return e.addr }

// Ends are the two ends of a link; ErrNoLink when there is none of that name.
func (l *Lab) Ends(id string) (a, b *End, err error) { return l.ends(id, linkNet) }

// TunnelEnds are the two ends of the tunnel over a link; ErrNoLink when there is none.
func (l *Lab) TunnelEnds(id string) (a, b *End, err error) {
	if l.state.Topology.Encryption != topology.WireGuard {
		return nil, nil, fmt.Errorf("%w: the links of lab %s have no tunnels", ErrNoLink, l.state.Name)
	}
	return l.ends(id, tunnelNet)
}

func (l *Lab) ends(id string, network uint32) (a, b *End, err error) {
	for i, k := range l.Links() {
		if k.ID != id {
			continue
		}
		if a, err = l.end(k.A); err != nil {
			return nil, nil, err
		}
		if b, err = l.end(k.B); err != nil {
			return nil, nil, err
		}
		if l.state.Numbered {
			x, y := endAddresses(network, i)
			a.addr, b.addr = x.String(), y.String()
		}
		return a, b, nil
	}
	return nil, nil, fmt.Errorf("%w in lab %s: %s", ErrNoLink, l.state.Name, id)
}

// end is a node with its own address.
func (l *Lab) end(node string) (*End, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	return &End{n, n.Addr()}, nil
}
