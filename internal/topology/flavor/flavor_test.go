package flavor

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func about(a, b, within float64) bool { return math.Abs(a-b) <= within }

func preset(t *testing.T, name string) Flavor {
	t.Helper()
	f, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPresets(t *testing.T) {
	f := preset(t, "t2.small")
	if f.VCPUs != 1 || f.Memory != 2<<30 || f.Credits.EarnPerHour != 12 || f.Credits.Max != 288 || f.Credits.Launch != 30 || !about(f.Credits.Baseline(), 0.2, 1e-9) {
		t.Errorf("%+v %+v", f, f.Credits)
	}
	if _, err := Preset("t2.smal"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"t2.small"`) {
		t.Error(err)
	}
}

// drive lets a machine demand a number of cores for a while and returns the cores that it got.
func drive(a *creditAccount, vcpus, wants float64, d time.Duration) float64 {
	total := time.Duration(0)
	for range d / slot {
		got := time.Duration(min(wants, a.quota(vcpus, slot)) * float64(slot))
		a.spend(got, slot)
		total += got
	}
	return total.Seconds() / d.Seconds()
}

func TestLaunchCreditsAllowBurst(t *testing.T) {
	c := *preset(t, "t2.small").Credits
	a := newCreditAccount(c)
	// 30 launch credits and 12 an hour at 1 credit a minute: 30 / (1 - 0.2) = 37.5 minutes.
	if got := drive(a, 1, 1, 37*time.Minute); !about(got, 1, 1e-6) {
		t.Errorf("%v cores with credits left", got)
	}
	if b := a.balance(); b <= 0 || b > 1 {
		t.Errorf("%v credits after 37 minutes", b)
	}
	drive(a, 1, 1, time.Minute)
	if got := drive(a, 1, 1, 10*time.Minute); !about(got, 0.2, 1e-3) {
		t.Errorf("%v cores without credits, want the baseline", got)
	}
}

func TestIdleMachineEarnsCredits(t *testing.T) {
	a := newCreditAccount(Credits{EarnPerHour: 12, Max: 288})
	drive(a, 1, 0, time.Hour)
	if b := a.balance(); !about(b, 12, 1e-6) {
		t.Errorf("%v credits after an hour", b)
	}
	drive(a, 1, 0, 30*time.Hour)
	if b := a.balance(); !about(b, 288, 1e-6) {
		t.Errorf("%v credits after more than a day", b)
	}
	if got := drive(a, 1, 0.1, time.Hour); !about(got, 0.1, 1e-9) || a.balance() != 288 {
		t.Errorf("below the baseline: %v cores, %v credits", got, a.balance())
	}
	b := newCreditAccount(Credits{EarnPerHour: 12, Max: 288, Launch: 30})
	drive(b, 1, 0, 40*time.Hour)
	if !about(b.balance(), 318, 1e-6) {
		t.Errorf("launch credits count towards the maximum balance: %v", b.balance())
	}
}

func TestCreditDebtIsRepaid(t *testing.T) {
	a := newCreditAccount(Credits{EarnPerHour: 12, Max: 288})
	a.spend(time.Second, slot) // a quota is not an exact bound
	if q := a.quota(1, slot); q >= 0.2 || q <= 0 {
		t.Errorf("quota %v with a negative balance", q)
	}
	if got := drive(a, 1, 1, 10*time.Minute); !about(got, 0.2, 0.005) {
		t.Errorf("%v cores in the long run", got)
	}
}

func TestStealModelIsSeeded(t *testing.T) {
	for _, share := range []float64{0, 0.05, 0.3, 0.5, 0.8} {
		sum := 0.0
		for k := range uint64(20_000) {
			sum += newStealModel(share, 3).shareIn(k)
		}
		if !about(sum/20_000, share, 0.01) {
			t.Errorf("%v on average, want %v", sum/20_000, share)
		}
	}
	same, other := 0, 0
	for k := range uint64(1000) {
		x := newStealModel(0.25, 1).shareIn(k)
		if x == newStealModel(0.25, 1).shareIn(k) {
			same++
		}
		if x == newStealModel(0.25, 2).shareIn(k) {
			other++
		}
	}
	if same != 1000 || other > 600 {
		t.Errorf("%d alike of one seed, %d of two", same, other)
	}
}

// busy is a machine that uses its whole quota.
type busy struct {
	quota           float64
	used, throttled time.Duration
	sets            int
}

func (b *busy) Name() string { return "busy" }
func (b *busy) LimitCPU(cores float64) error {
	b.quota = cores
	b.sets++
	return nil
}
func (b *busy) Used() (time.Duration, time.Duration, error) { return b.used, b.throttled, nil }

func TestGovernor(t *testing.T) {
	g, m := NewGovernor(), &busy{}
	g.Add(m, Flavor{VCPUs: 1, Steal: 0.2, Credits: &Credits{EarnPerHour: 12, Max: 288, Launch: 0.5}}, 1)
	at := time.Unix(0, 0)
	for k := range uint64(6000) { // ten minutes
		if err := g.step(k, at); err != nil {
			t.Fatal(err)
		}
		got := time.Duration(m.quota * float64(slot))
		m.used += got
		m.throttled += slot - got
		at = at.Add(slot)
	}
	s, ok := g.State("busy")
	if !ok || s.Credits < 0 || s.Credits > 0.5 {
		t.Errorf("%+v", s)
	}
	if cores := m.used.Minutes() / 10; cores < 0.19 || cores > 0.26 {
		t.Errorf("%v cores over ten minutes, want about the baseline", cores)
	}
	if s.Stolen <= 0 || s.Stolen > m.throttled {
		t.Errorf("%v stolen of %v throttled", s.Stolen, m.throttled)
	}
	if _, ok := g.State("other"); ok {
		t.Error("a machine without credits")
	}
}
