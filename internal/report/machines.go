package report

import (
	"fmt"
	"math"

	"skerry/internal/evidence/stats"
)

// tellAt is the P below which machines are said to make a difference.
const tellAt = 0.05

// machinesFinding says how much machines explain of the goodput, where a run's trials were measured
// on several.
func (m *model) machinesFinding() []string {
	values, machines := m.placed()
	if machines < 2 {
		return nil
	}
	f, ok := stats.MachineFactor(values, m.dir.Run.Seed)
	if !ok {
		return []string{fmt.Sprintf("Trials were measured on %d machines, and no cell on several in a way that machines could be told from cells: a difference between cells may be one of machines.", machines)}
	}
	if f.P >= tellAt {
		return nil
	}
	share := func(deviation float64) string { return fmt.Sprintf("%.0f %%", 100*math.Expm1(deviation)) }
	said := fmt.Sprintf("goodput differs between the %d machines by %s (standard deviation, p = %.3f), between cells by %s", machines, share(f.Machines), f.P, share(f.Cells))
	if f.Machines > f.Cells {
		return []string{"With care: machines explain more than cells do: " + said + "."}
	}
	return []string{"Machines make a difference: " + said + "."}
}

// placed are the logarithms of the trials' goodput by cell and machine, and how many machines there are.
func (m *model) placed() (values []stats.Placed, machines int) {
	number := map[string]int{}
	for i, c := range m.cells {
		for _, t := range c.used {
			if t.Machine == nil || t.Goodput <= 0 {
				continue
			}
			if _, known := number[t.Machine.Name]; !known {
				number[t.Machine.Name] = len(number)
			}
			values = append(values, stats.Placed{Cell: i, Machine: number[t.Machine.Name], Value: math.Log(t.Goodput)})
		}
	}
	return values, len(number)
}
