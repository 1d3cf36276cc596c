// Package instance is the metadata server's process: it opens a directory's tree and serves it, alone, as a replica, or
// as one of several servers that share a tree.
package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/bearer"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/protocol"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/server"
	"skerry/systems/metadata/store"
)

// Options configures a server.
type Options struct {
	Listen  string // address: "127.0.0.1:8080"
	Dir     string // of the log of changes
	Journal changelog.Options
	// Group makes the server one of several replicas. nil: no replicas.
	Group *ReplicaGroup
	// Share makes the server one of several that share a tree. nil: a tree of its own.
	Share    *Share
	Security Security
	Server   server.Options
	Log      *slog.Logger
	// Ready is called when the server accepts connections. Its error stops the server.
	Ready func(addr net.Addr, r protocol.LogRecovery) error
}

// Run serves until the context ends or the replica stops.
func Run(ctx context.Context, o Options) (err error) {
	start := time.Now()
	peer := ""
	if o.Group != nil {
		peer = o.Group.self()
	}
	creds, err := o.Security.load(o.Listen, peer)
	if err != nil {
		return fmt.Errorf("serving %s: %w", o.Dir, err)
	}
	if creds.tokens != nil && bearer.SentUnencrypted(creds.tls, o.Listen) {
		o.Log.Warn(bearer.UnencryptedWarning, "listen", o.Listen)
	}
	k, recovery, err := o.openBackend(ctx, creds)
	if err != nil {
		return fmt.Errorf("serving %s: %w", o.Dir, err)
	}
	defer func() { err = errors.Join(err, k.log.Close()) }()
	if recovery.Torn > 0 {
		o.Log.Warn("a crash tore the last, unacknowledged journal write; it was cut off", "bytes", recovery.Torn)
	}
	counts := func() protocol.Status { return protocol.Status{Tree: k.state.Tree().Counts(), Journal: k.log.Status()} }
	own, meter := store.New(k.state, k.log), rebalance.NewMeter()
	if o.Share != nil {
		own.Name = o.Share.Name
	}
	service, err := o.newFrontend(metered{own, meter}, creds)
	if err != nil {
		return fmt.Errorf("serving %s: %w", o.Dir, err)
	}
	defer service.close()
	if service.router != nil {
		service.startKeeper(ctx, o.Share.Name, own, o.Log)
		service.startBalancer(ctx, o, own, k)
		service.watchAddressFile(ctx, o.Share, o.Log)
	}
	o.Server.Hosts, o.Server.Tokens = append(append(o.Server.Hosts, o.Listen), creds.hosts()...), creds.tokens
	o.Server.Log, o.Server.Collectors = o.Log, append(server.Collectors(counts), service.collectors(meter)...)
	o.Server.Seen = service.logPositions(own)
	o.Server.Own, o.Server.Routes = service.own, k.routes(o.Log)
	o.Server.Status = func() protocol.Status {
		s := counts()
		s.Recovery, s.Subtrees, s.Uptime = recovery, k.state.Tree().VirtualOwners(), time.Since(start).Seconds()
		if o.Share != nil {
			s.Name, s.Root, s.Servers, s.Holds = o.Share.Name, o.Share.Root, service.currentAddresses(), listSubtrees(k.state.Tree())
			s.Asked = service.forwarded(o.Share.Name)
		}
		now := meter.Load()
		s.Load, s.Balancer = &now, service.balancerStatus()
		s.Transactions, _ = own.Transactions()
		if k.replica != nil {
			group := k.replica.Node().Status()
			s.Group = &group
		}
		return s
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return advice.With(fmt.Errorf("serving %s: %w", o.Dir, err), "use a free address, such as --listen 127.0.0.1:0 for any port")
	}
	if o.Ready != nil {
		if err := o.Ready(l.Addr(), recovery); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	why := k.watch(ctx, cancel)
	err = server.New(service.whole, o.Server).Serve(ctx, creds.listener(l))
	cancel()
	return errors.Join(err, why())
}

// WriteAddr writes an address to a file atomically.
func WriteAddr(path string, addr net.Addr) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, addr)
		return err
	})
}
