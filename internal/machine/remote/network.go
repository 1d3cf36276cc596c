package remote

import (
	"context"
	"net/netip"

	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/rpc"
)

// Tunnel implements machine.Network.
func (p *part) Tunnel(ctx context.Context, ends []machine.TunnelEnd) error {
	return p.tell(ctx, "/part/tunnel", ends)
}

// Address implements machine.Network.
func (p *part) Address(ctx context.Context, devices []machine.Device) error {
	return p.tell(ctx, "/part/address", devices)
}

// Route implements machine.Network.
func (p *part) Route(ctx context.Context, routes []machine.Route) error {
	return p.tell(ctx, "/part/route", routes)
}

// Carrier implements machine.Network.
func (p *part) Carrier(ctx context.Context, c machine.Cable, up bool) error {
	return p.tell(ctx, "/part/carrier", rpc.Carrier{Cable: c, Up: up})
}

// Ways implements machine.Network.
func (p *part) Ways(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	return ask[[]string](ctx, p.m, "/part/ways", p.of, rpc.Ways{Node: node, To: to})
}

// TUN implements machine.Network.
func (p *part) TUN(ctx context.Context, t machine.TUN) error { return p.tell(ctx, "/part/tun", t) }

// Listening implements machine.Network.
func (p *part) Listening(ctx context.Context, node string, port int) (bool, error) {
	return ask[bool](ctx, p.m, "/part/listening", p.of, rpc.Listening{Node: node, Port: port})
}

// Echo implements machine.Measures.
func (p *part) Echo(ctx context.Context, e machine.Echoes) ([]probe.RTTResult, error) {
	return ask[[]probe.RTTResult](ctx, p.m, "/part/echo", p.of, e)
}

// Train implements machine.Measures.
func (p *part) Train(ctx context.Context, t machine.Train) (probe.TrainResult, error) {
	return ask[probe.TrainResult](ctx, p.m, "/part/train", p.of, t)
}

// MTU implements machine.Services.
func (p *part) MTU(ctx context.Context) (int, error) {
	return ask[int](ctx, p.m, "/part/mtu", p.of, rpc.Nothing{})
}

// Bridge implements machine.Services.
func (p *part) Bridge(ctx context.Context, bridges []machine.Bridge) error {
	return p.tell(ctx, "/part/bridge", bridges)
}

// Rule implements machine.Services.
func (p *part) Rule(ctx context.Context, rules []machine.Rules) error {
	return p.tell(ctx, "/part/rule", rules)
}
