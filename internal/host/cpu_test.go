package host

import (
	"errors"
	"testing"
)

// The kernel says whether the new quota held the process back.
func TestAQuotaThatChanges(t *testing.T) {
	n := newNode(t, func(s *Spec) { s.CPU = 2 })
	needGroup(t, n)
	if err := n.LimitCPU(0.2); err != nil {
		t.Fatal(err)
	}
	output(t, n, Command{}, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	used, throttled, err := n.Used()
	if err != nil || used <= 0 || throttled < used/2 {
		t.Errorf("used %v and was throttled for %v, %v", used, throttled, err)
	}
	u, err := n.Usage()
	if err != nil || u.User+u.System > 2*u.CPU || u.User+u.System <= 0 {
		t.Errorf("user %v and system %v of %v, %v", u.User, u.System, u.CPU, err)
	}
}

func TestQuotasOfAnySizeAreTaken(t *testing.T) {
	n := newNode(t, nil)
	needGroup(t, n)
	for _, cores := range []float64{0.01, 0.0253, 0.0333333, 0.05, 0.099999, 0.1, 1, 1.7, 64, 0.011} {
		if err := n.LimitCPU(cores); err != nil {
			t.Errorf("%v cores: %v", cores, err)
		}
	}
}

func TestAQuotaNeedsAControlGroup(t *testing.T) {
	n := newNode(t, func(s *Spec) { s.Group = nil })
	if err := n.LimitCPU(1); !errors.Is(err, ErrNoGroup) {
		t.Error(err)
	}
}
