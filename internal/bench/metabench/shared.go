package metabench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/procfs"
	"skerry/internal/system/metadata"
)

// shared are servers, processes, that share a tree. /hot is on all of them.
type shared struct {
	served []*served
	addrs  []string
	dirs   []string
	groups []*cgroup.Group
}

// share starts n servers, each with a share of a processor, 0 for no bound.
func (b *bench) share(ctx context.Context, n int, cores float64) (s *shared, err error) {
	s = &shared{}
	args := []string{"--root", "g1"}
	for i := range n {
		addr, err := freeAddress()
		if err != nil {
			return nil, err
		}
		s.addrs, args = append(s.addrs, addr), append(args, "--server", fmt.Sprintf("g%d=%s", i+1, addr))
	}
	var names []string
	for i, addr := range s.addrs {
		name := fmt.Sprintf("g%d", i+1)
		names = append(names, name)
		dir := b.room("hot-" + name)
		s.dirs = append(s.dirs, dir)
		one, err := b.start(ctx, dir, append([]string{"--listen", addr, "--cluster", name}, args...)...)
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.served = append(s.served, one)
		if cores > 0 {
			if err := s.bound(one, name, cores); err != nil {
				return nil, errors.Join(err, s.stop())
			}
		}
	}
	t, err := dialThin(ctx, s.addrs[0])
	if err == nil {
		defer t.conn.Close()
		err = t.do([]byte("mkdir /hot"))
	}
	if err == nil && n > 1 {
		err = t.do([]byte("delegate /hot " + strings.Join(names, ",")))
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// bound gives a server so much of a processor.
func (s *shared) bound(one *served, name string, cores float64) error {
	tree, err := cgroup.Open()
	if err != nil {
		return err
	}
	g := tree.Group(fmt.Sprintf("bench-%d/%s", os.Getpid(), name))
	s.groups = append(s.groups, g)
	if err := g.Create(); err != nil {
		return err
	}
	return errors.Join(g.LimitCPU(cores), g.Join(one.cmd.Process.Pid))
}

func (s *shared) stop() (err error) {
	for _, one := range s.served {
		err = errors.Join(err, one.stop(syscall.SIGTERM))
	}
	for _, dir := range s.dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	for _, g := range s.groups {
		err = errors.Join(err, g.Remove())
	}
	return err
}

// used is the processor time of the servers, and their memory.
func (s *shared) used() (busy time.Duration, resident int64, err error) {
	for _, one := range s.served {
		stat, problem := procfs.ReadStat(one.cmd.Process.Pid)
		busy, resident, err = busy+stat.CPU, resident+stat.Resident, errors.Join(err, problem)
	}
	return busy, resident, err
}

// conns are a client's, one to each server.
type conns []*thin

func (s *shared) dial(ctx context.Context) (all conns, err error) {
	for _, addr := range s.addrs {
		t, err := dialThin(ctx, addr)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, t)
	}
	return all, nil
}

func (c conns) close() (err error) {
	for _, t := range c {
		err = errors.Join(err, t.conn.Close())
	}
	return err
}

// of is the number of the server that has an entry of /hot.
func (c conns) of(name []byte) int { return metadata.PartOf(string(name), len(c)) }

// busy is the processor time that the servers and this process have had.
func (s *shared) busy() (servers, own time.Duration, err error) {
	servers, _, err = s.used()
	self, problem := procfs.ReadStat(os.Getpid())
	return servers, self.CPU, errors.Join(err, problem)
}
