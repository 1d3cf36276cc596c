package series

import (
	"fmt"
	"slices"

	"skerry/internal/record"
)

// KindStolen is the kind of a Band that is no event: processors were taken from the driver.
const KindStolen = "stolen"

// StolenOf are the seconds of a timeline in which processors were taken from the driver, those
// that follow each other in one band.
func StolenOf(rows []record.Second) (bands []Band) {
	for rest := slices.Clone(rows); len(rest) > 0; {
		n := slices.IndexFunc(rest, func(r record.Second) bool { return r.Stolen == 0 })
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			rest = rest[1:]
			continue
		}
		bands = append(bands, stolen(rest[:n]))
		rest = rest[n:]
	}
	return bands
}

func stolen(rows []record.Second) Band {
	marked, length := 0.0, 0.0
	for _, r := range rows {
		marked, length = marked+r.Stolen, length+r.Length
	}
	last := rows[len(rows)-1]
	return Band{
		Name: "processors taken away", Kind: KindStolen, Text: fmt.Sprintf("the driver could not run for %.2g of %.3g s", marked, length),
		From: Number(rows[0].T), To: number(float64(last.T) + last.Length),
	}
}
