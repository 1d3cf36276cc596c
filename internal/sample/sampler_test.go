package sample

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"skerry/internal/host"
)

type node struct {
	host.Host
	name  string
	usage host.Usage
	err   error
}

func (n *node) Name() string               { return n.name }
func (n *node) Usage() (host.Usage, error) { return n.usage, n.err }

func TestTakeReportsDifferences(t *testing.T) {
	n := &node{name: "Pune"}
	var sent uint64
	s := &Sampler{
		Hosts:       []host.Host{n},
		EmulatorPID: os.Getpid(),
		Traffic: func(context.Context) (Traffic, error) {
			return Traffic{Tx: map[string]uint64{"Pune": sent}}, nil
		},
	}
	if rows, err := s.Take(t.Context(), 0); err != nil || rows != nil {
		t.Fatalf("first call: %v, %v", rows, err)
	}
	n.usage = host.Usage{CPU: time.Hour, Memory: 7, ReadBytes: 11, WroteBytes: 13}
	sent = 1000
	rows, err := s.Take(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[1].Node != EmulatorNode || rows[2].Node != HostNode {
		t.Fatalf("rows: %+v", rows)
	}
	got := rows[0]
	if got.T != 5 || got.Node != "Pune" || got.TxBytes != 1000 || got.Memory != 7 || got.ReadBytes != 11 || got.WroteBytes != 13 || got.CPU <= 0 {
		t.Errorf("got %+v", got)
	}
}

func TestTakeNamesTheNodeThatFails(t *testing.T) {
	gone := errors.New("gone")
	s := &Sampler{Hosts: []host.Host{&node{name: "Pune", err: gone}}}
	if _, err := s.Take(t.Context(), 0); !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}
