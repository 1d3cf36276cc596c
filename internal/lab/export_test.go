package lab

import (
	"context"
	"fmt"

	"skerry/internal/lab/service"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// Attach is AttachOn for this machine.
func Attach(ctx context.Context, stateDir, name string) (*Lab, error) {
	m, err := localMachine(stateDir)
	if err != nil {
		return nil, err
	}
	return AttachOn(ctx, m, name)
}

// LocalHosts returns the nodes on this machine, for operations on their networks.
func (l *Lab) LocalHosts() []host.NamespaceHost {
	var hosts []host.NamespaceHost
	for _, n := range l.nodes {
		if in, ok := n.(host.NamespaceHost); ok {
			hosts = append(hosts, in)
		}
	}
	return hosts
}

// EmulatorPID is the process that forwards packets, 0 if the kernel forwards them.
func (l *Lab) EmulatorPID() int { return l.part.Facts().Emulator }

// TunnelPID is the process that encrypts links. It is 0 without encryption, with encryption in the kernel, or if
// another command started it.
func (l *Lab) TunnelPID() int { return l.part.Facts().Tunneller }

// ServiceRunning is the running service, nil without one and in processes that did not start it.
func (l *Lab) ServiceRunning() *service.Controller { return l.service }

// End is a node at one end of a link, from which the link is measured.
type End struct {
	machine.LocalHost
	addr string
}

// Addr is the address of this end for the other end.
func (e *End) Addr() string { return e.addr }

// Ends are the two ends of a link; ErrNoLink if it does not exist.
func (l *Lab) Ends(id string) (a, b *End, err error) {
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
			x, y := endAddresses(linkNet, i)
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
