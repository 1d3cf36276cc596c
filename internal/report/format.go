package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"skerry/internal/evidence/stats"
)

// noFigure stands for a figure that there is not.
const noFigure = "–"

// formatFigure writes a number with about three digits that count and thousands apart.
func formatFigure(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return noFigure
	case a == 0:
		return "0"
	case a >= 99.95:
		return groupThousands(v)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.0995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func groupThousands(v float64) string {
	s := strconv.FormatFloat(math.Round(math.Abs(v)), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 {
		return "−" + s
	}
	return s
}

func formatCount(n int64) string { return groupThousands(float64(n)) }

// interval writes a mean with its half-width, both as exact as the half-width deserves.
func interval(e stats.Estimate) string {
	if e.N == 0 {
		return noFigure
	}
	if !e.HasInterval() {
		return formatFigure(e.Mean)
	}
	return formatPlusMinus(e.Mean, e.HalfWidth)
}

const plusMinusSign = " ± "

func formatPlusMinus(mean, half float64) string {
	if math.Abs(mean) >= 99.95 && half >= 0.95 {
		return groupThousands(mean) + plusMinusSign + groupThousands(half)
	}
	return formatFigure(mean) + plusMinusSign + formatFigure(half)
}

// formatMillis writes microseconds as milliseconds.
func formatMillis(us float64) string { return formatFigure(us / 1000) }

// formatMegabytes are of 1,000,000 bytes.
func formatMegabytes(bytes float64) string { return formatFigure(bytes / 1e6) }

// formatHundredths writes milliseconds to the hundredth.
func formatHundredths(v float64) string { return fmt.Sprintf("%.2f", v) }

func formatRange(lo, hi float64, write func(float64) string) string {
	a, b := write(lo), write(hi)
	if a == b {
		return a
	}
	return a + " – " + b
}

// formatPercent writes a share of 0 to 1.
func formatPercent(share float64) string {
	switch {
	case share == 0:
		return "0 %"
	case share > 0 && share < 0.0001:
		return "< 0.01 %"
	}
	return formatFigure(share*100) + " %"
}

// formatFactor writes how many times.
func formatFactor(f float64) string {
	if f < 9.95 {
		return strconv.FormatFloat(f, 'f', 1, 64) + "×"
	}
	return groupThousands(f) + "×"
}

// formatDuration writes a length of time as people say it.
func formatDuration(d time.Duration) string {
	s := int64(math.Round(d.Seconds()))
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}

func formatSeconds(s float64) string { return formatDuration(time.Duration(s * float64(time.Second))) }

// plural writes "1 trial", "2 trials".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return formatCount(int64(n)) + " " + what + "s"
}

// sanitize makes a text of a run safe to print: whatever could move a cursor or hide text
// on a terminal becomes a mark.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Sanitize makes a text of a run safe to print on one line.
func Sanitize(s string) string { return sanitize(s) }

// FormatInterval writes a mean over repetitions as tables have it: "1,461 ± 89".
func FormatInterval(e stats.Estimate) string { return interval(e) }
