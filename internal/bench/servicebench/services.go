package servicebench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/evidence/sample"
	"skerry/internal/lab"
	"skerry/internal/lab/service"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

const (
	members     = 3 // of every cluster
	loadThreads = 32
	// warmup is left out of every measurement.
	warmup = 500 * time.Millisecond
)

// stand is a lab with a cluster on it.
type stand struct {
	Options
	kind     string
	lab      *lab.Lab
	cluster  database.Cluster
	client   host.Host
	workload ycsb.Workload
	// Values of each round.
	p50, p95, throughput, cpu []float64
}

func (o Options) services(ctx context.Context, r *Result) (err error) {
	var stands []*stand
	defer func() {
		for _, s := range stands {
			err = errors.Join(err, s.end(context.WithoutCancel(ctx)))
		}
	}()
	for _, kind := range withNone(o.Kinds) {
		s := &stand{Options: o, kind: kind}
		stands = append(stands, s)
		if err := s.begin(ctx); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	r.Engine, _ = stands[0].lab.Engine()
	if err := o.rounds(len(stands), func(round, i int) error {
		o.Progress(fmt.Sprintf("round %d of %d: %s", round+1, o.Rounds, stands[i].kind))
		if err := stands[i].measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", stands[i].kind, err)
		}
		return nil
	}); err != nil {
		return err
	}
	none := stands[slices.IndexFunc(stands, func(s *stand) bool { return s.kind == topology.NoService })]
	for _, s := range stands {
		c := Cost{Kind: s.kind, Figures: Figures{figure(s.p50), figure(s.p95), figure(s.throughput), figure(s.cpu)}}
		if s != none {
			c.Over = &Figures{over(s.p50, none.p50), over(s.p95, none.p95), over(s.throughput, none.throughput), over(s.cpu, none.cpu)}
		}
		r.Services = append(r.Services, c)
	}
	return nil
}

// cloud is three nodes and a client, without latency between them.
func (s *stand) cloud() (topology.Topology, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == s.kind })
	if i < 0 {
		return topology.Topology{}, fmt.Errorf("no kind of service %q", s.kind)
	}
	n, none := members, unit.Duration(0)
	spec := topology.Spec{Sites: []topology.SiteSpec{{Name: "site", Nodes: &n}}, Service: kinds[i].service}
	spec.Defaults.SiteRTT = &none
	t, err := spec.Build(".", os.ReadFile)
	if err != nil {
		return t, err
	}
	return topology.WithClient(t, "")
}

// begin brings lab and cluster up and loads the records.
func (s *stand) begin(ctx context.Context) (err error) {
	s.Progress(s.kind + ": bringing the lab up")
	cloud, err := s.cloud()
	if err != nil {
		return err
	}
	balancer, err := service.Find(ctx, cloud.Service)
	if err != nil {
		return err
	}
	var ports database.Ports
	if a, ok := s.Database.(database.Announced); ok {
		if ports, err = a.Ports(members, nil); err != nil {
			return err
		}
	}
	s.lab, err = lab.Up(ctx, lab.Config{Name: name(s.kind), Topology: cloud, Scale: 1, Engine: s.Engine, Exe: s.Exe, Ephemeral: true,
		Ports: ports.All, Balancer: balancer})
	if err != nil {
		return err
	}
	env := database.Env{Installation: s.Installation, Options: database.Options{"appendonly": false}, Progress: func(string) {}}
	if plan, ok := s.lab.Service(); ok {
		env.Contact = plan.Contact
	}
	for _, n := range cloud.Nodes {
		if n.Role == topology.Client {
			s.client, err = s.lab.Host(n.Name)
		} else {
			var h host.Host
			h, err = s.lab.Member(n.Name)
			env.Nodes = append(env.Nodes, h)
		}
		if err != nil {
			return err
		}
	}
	env.Control = s.client
	if s.cluster, err = s.Database.Start(ctx, env); err != nil {
		return err
	}
	properties, _ := ycsb.Builtin("a")
	properties = maps.Clone(properties)
	properties["recordcount"] = fmt.Sprint(s.Records)
	properties["insertcount"] = properties["recordcount"]
	properties["operationcount"] = "0"
	if s.workload, _, err = ycsb.Parse(properties); err != nil {
		return err
	}
	_, err = s.drive(ctx, load.Spec{Phase: load.PhaseLoad, Threads: loadThreads})
	return err
}

// drive has the client make requests.
func (s *stand) drive(ctx context.Context, spec load.Spec) (load.Result, error) {
	spec.Workload, spec.Seed = s.workload, s.Seed
	session, err := load.StartAgent(ctx, s.client, s.Exe, load.AgentSpec{Database: s.Database.Name(), Properties: s.cluster.Properties(), Spec: spec})
	if err != nil {
		return load.Result{}, err
	}
	for range session.Intervals() {
	}
	got, err := session.Wait()
	if err == nil && got.OK == 0 {
		err = fmt.Errorf("no request succeeded: %v", got.Errors)
	}
	return got, err
}

// measure measures a round: half of the time with one thread, half with many.
func (s *stand) measure(ctx context.Context) error {
	one, err := s.drive(ctx, load.Spec{Threads: 1, Warmup: warmup, Duration: s.Time / 2})
	if err != nil {
		return err
	}
	began := make(chan error, 1)
	var before sample.Machine
	session, err := load.StartAgent(ctx, s.client, s.Exe, load.AgentSpec{Database: s.Database.Name(), Properties: s.cluster.Properties(),
		Spec: load.Spec{Workload: s.workload, Threads: s.Threads, Seed: s.Seed, Warmup: warmup, Duration: s.Time / 2}})
	if err != nil {
		return err
	}
	go func() {
		var err error
		if _, ok := <-session.Began(); ok {
			before, err = sample.ReadMachine(ctx, files.Local{})
		}
		began <- err
	}()
	for range session.Intervals() {
	}
	after, errAfter := sample.ReadMachine(ctx, files.Local{})
	many, err := session.Wait()
	if err := errors.Join(err, errAfter, <-began); err != nil {
		return err
	}
	if many.OK == 0 {
		return fmt.Errorf("no request succeeded: %v", many.Errors)
	}
	s.p50 = append(s.p50, micros(one.Latency.Service.Quantile(0.5)))
	s.p95 = append(s.p95, micros(one.Latency.Service.Quantile(0.95)))
	s.throughput = append(s.throughput, many.Goodput())
	s.cpu = append(s.cpu, micros(after.Busy-before.Busy)/float64(many.OK))
	return nil
}

func (s *stand) end(ctx context.Context) (err error) {
	if s.cluster != nil {
		err = s.cluster.Stop(ctx)
	}
	if s.lab != nil {
		err = errors.Join(err, s.lab.Down(ctx))
	}
	return err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
