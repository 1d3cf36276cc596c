package flavor

import "time"

// Credits are those of burstable processors: one is one virtual processor at full speed for
// one minute. What a machine earns is what it may use for ever: its baseline.
type Credits struct {
	EarnPerHour float64 `json:"earn_per_hour"`
	// Max is how many are kept; what is earned beyond is lost.
	Max float64 `json:"max"`
	// Launch is how many a machine begins with. They are spent first, and do not count
	// towards Max.
	Launch float64 `json:"launch"`
}

// Baseline is the cores that what is earned pays for: 0.2 for 12 credits an hour.
func (c Credits) Baseline() float64 { return c.EarnPerHour / 60 }

// Account is a machine's credits as time goes on.
type Account struct {
	credits Credits
	launch  float64
	earned  float64
}

// NewAccount is that of a machine just launched.
func NewAccount(c Credits) *Account { return &Account{credits: c, launch: c.Launch} }

// Balance is how many credits there are, never below 0.
func (a *Account) Balance() float64 { return max(0, a.launch+a.earned) }

// Spend takes down that so much processor time was used in a length of time, in which credits
// were earned too. What was used beyond the balance is owed.
func (a *Account) Spend(used, in time.Duration) {
	spent := used.Minutes()
	first := min(a.launch, spent)
	a.launch -= first
	a.earned = min(a.credits.Max, a.earned+a.credits.EarnPerHour*in.Hours()-(spent-first))
}

// Quota is the cores that may be used in the next length of time: the baseline and whatever
// the balance pays for, at most all of them. (The maker lowers speed to the baseline within
// 15 minutes; here it is lowered when the balance is spent.)
func (a *Account) Quota(vcpus float64, next time.Duration) float64 {
	pays := a.Balance() / next.Minutes()
	if a.launch+a.earned < 0 { // what is owed is paid back from the baseline
		pays = max(-a.credits.Baseline()/2, (a.launch+a.earned)/next.Minutes())
	}
	return min(vcpus, a.credits.Baseline()+pays)
}
