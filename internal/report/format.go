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

const noFigure = "–"

// formatFigure writes a number with three significant digits and thousands separators.
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

// formatMegabytes divides by 1,000,000.
func formatMegabytes(bytes float64) string { return formatFigure(bytes / 1e6) }

func formatHundredths(v float64) string { return fmt.Sprintf("%.2f", v) }

func formatRange(lo, hi float64, write func(float64) string) string {
	a, b := write(lo), write(hi)
	if a == b {
		return a
	}
	return a + " – " + b
}

func formatPercent(share float64) string {
	switch {
	case share == 0:
		return "0 %"
	case share > 0 && share < 0.0001:
		return "< 0.01 %"
	}
	return formatFigure(share*100) + " %"
}

// formatFactor writes a ratio as a multiple: "4.7×".
func formatFactor(f float64) string {
	if f < 9.95 {
		return strconv.FormatFloat(f, 'f', 1, 64) + "×"
	}
	return groupThousands(f) + "×"
}

// FormatDuration writes a duration with the precision that matters: "9 min 5 s", "39 min", "2 h 4 min".
func FormatDuration(d time.Duration) string {
	s := int64(math.Round(d.Seconds()))
	m := (s + 30) / 60
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 600 && s%60 != 0:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case m < 60:
		return fmt.Sprintf("%d min", m)
	case m%60 == 0:
		return fmt.Sprintf("%d h", m/60)
	}
	return fmt.Sprintf("%d h %d min", m/60, m%60)
}

func formatSeconds(s float64) string { return FormatDuration(time.Duration(s * float64(time.Second))) }

// Plural writes a count with its noun: "1 trial", "2 trials".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return formatCount(int64(n)) + " " + what + "s"
}

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

// Sanitize replaces newlines and all unprintable characters, so that text from a run directory
// cannot move the cursor or hide text on a terminal.
func Sanitize(s string) string { return sanitize(s) }

// FormatInterval writes a mean over repetitions with its half-width: "1,461 ± 89".
func FormatInterval(e stats.Estimate) string { return interval(e) }
