package compare

import (
	"math"
	"testing"

	"skerry/internal/evidence/stats"
)

// printed is a row of the tables 6-1 to 6-3 of the comparison of clouds: means and SDs of CPU %
// on AWS and OpenStack, the effect size as printed, and what its own formula gives.
type printed struct {
	workload               string
	aws, awsSD, open, sdOS float64
	g, recomputed          float64
	difference             float64 // table 6-7, percentage points
}

// cpuTables: where g and recomputed differ by more than rounding, the document is wrong.
var cpuTables = map[string][]printed{
	"6-1, 3 nodes": {
		{"A", 52.90, 9.14, 75.66, 7.27, 2.75, 2.76, 22.76},
		{"B", 58.13, 5.89, 71.83, 7.08, 0.57, 2.10, 13.7},
		{"C", 52.85, 8.21, 70.10, 5.73, 2.44, 2.44, 17.25},
		{"D", 52.76, 6.64, 70.93, 7.25, 2.61, 2.61, 18.17},
		{"E", 59.18, 3.06, 73.94, 7.17, 2.12, 2.68, 14.76},
		{"F", 54.07, 8.28, 69.49, 3.69, 2.41, 2.41, 15.42},
	},
	"6-2, 5 nodes": {
		{"A", 43.32, 5.67, 59.87, 7.23, 2.53, 2.55, 16.55},
		{"B", 32.26, 7.92, 58.94, 10.93, 2.79, 2.80, 26.68},
		{"C", 42.66, 4.78, 62.30, 6.43, 3.53, 3.47, 19.64},
		{"D", 39.81, 5.34, 62.33, 6.97, 3.63, 3.63, 22.52},
		{"E", 40.07, 10.71, 57.66, 4.85, 2.11, 2.12, 17.59},
		{"F", 37.07, 9.18, 62.60, 15.07, 3.44, 2.05, 25.23},
	},
	"6-3, production": {
		{"A", 52.73, 11.23, 77.47, 11.96, 2.13, 2.13, 24.74},
		{"B", 50.34, 4.72, 71.64, 7.72, 3.33, 3.33, 21.3},
		{"C", 56.95, 5.31, 70.52, 4.27, 2.82, 2.82, 13.57},
		{"D", 51.90, 10.89, 73.69, 9.26, 2.16, 2.16, 21.79},
		{"E", 53.85, 6.85, 70.26, 4.48, 2.83, 2.84, 16.41},
		{"F", 60.56, 14.57, 70.25, 15.09, 2.01, 0.65, 9.69},
	},
}

// wrong are the printed figures that do not follow from the means and SDs beside them: by
// more than 0.08, which rounding before the last step explains.
var wrong = map[string]bool{"6-1, 3 nodes B": true, "6-1, 3 nodes E": true, "6-2, 5 nodes F": true, "6-3, production F": true}

func TestTables6_1To6_3Recomputed(t *testing.T) {
	for table, rows := range cpuTables {
		for _, r := range rows {
			e := stats.EffectOf(stats.Estimate{N: 5, Mean: r.aws, SD: r.awsSD}, stats.Estimate{N: 5, Mean: r.open, SD: r.sdOS})
			if got := math.Round(100*e.Uncorrected) / 100; got != r.recomputed {
				t.Errorf("%s %s: g %v, want %v", table, r.workload, got, r.recomputed)
			}
			if off := math.Abs(e.Uncorrected-r.g) > 0.08; off != wrong[table+" "+r.workload] {
				t.Errorf("%s %s: g %.2f, the document prints %v", table, r.workload, e.Uncorrected, r.g)
			}
			// Five repetitions each: the correction takes a tenth off.
			if want := e.Uncorrected * 0.9027; math.Abs(e.Hedges-want) > 0.001 {
				t.Errorf("%s %s: corrected %v, want %v", table, r.workload, e.Hedges, want)
			}
		}
	}
}

// throughput is a row of the tables 6-4 to 6-6: means, variances and SDs of ops/s.
type throughput struct {
	workload                  string
	aws, awsVar, awsSD        float64
	open, openVar, openSD     float64
	g                         float64 // the document gives none
	awsVarWrong, openVarWrong bool    // the variance printed is not the square of the SD printed
}

var throughputTables = map[string][]throughput{
	"6-4, 3 nodes": {
		{workload: "A", aws: 4744.58, awsVar: 247329.81, awsSD: 497.32, open: 3637.99, openVar: 198540.02, openSD: 445.58, g: -2.34},
		{workload: "B", aws: 4743.87, awsVar: 191349.54, awsSD: 437.43, open: 3682.62, openVar: 221353.47, openSD: 470.48, g: -2.34},
		{workload: "C", aws: 4640.77, awsVar: 208879.85, awsSD: 457.04, open: 3065.38, openVar: 980441.14, openSD: 996.37, g: -2.03, openVarWrong: true},
		{workload: "D", aws: 4663.50, awsVar: 240344.56, awsSD: 490.24, open: 3494.21, openVar: 154528.12, openSD: 393.11, g: -2.63},
		{workload: "E", aws: 5179.07, awsVar: 90839.56, awsSD: 301.39, open: 3560.99, openVar: 185280.37, openSD: 430.44, g: -4.35},
		{workload: "F", aws: 4790.69, awsVar: 209462.12, awsSD: 457.31, open: 3571.52, openVar: 142752.77, openSD: 464.27, g: -2.65, openVarWrong: true},
	},
	"6-5, 5 nodes": {
		{workload: "A", aws: 6241.55, awsVar: 406944.58, awsSD: 637.42, open: 3938.56, openVar: 653926.79, openSD: 808.66, g: -3.16},
		{workload: "B", aws: 5694.43, awsVar: 257371.61, awsSD: 507.3, open: 4182.62, openVar: 660406.80, openSD: 812.65, g: -2.23},
		{workload: "C", aws: 5800.51, awsVar: 265052.49, awsSD: 514.83, open: 4175.33, openVar: 309320.16, openSD: 556.17, g: -3.03},
		{workload: "D", aws: 5998.63, awsVar: 291696.12, awsSD: 540.01, open: 4057.68, openVar: 228913.78, openSD: 478.45, g: -3.80},
		{workload: "E", aws: 6257.78, awsVar: 404505.16, awsSD: 636.01, open: 4231.89, openVar: 250662.10, openSD: 500.67, g: -3.54},
		{workload: "F", aws: 5692.58, awsVar: 320581.48, awsSD: 566.21, open: 3510.52, openVar: 1168669.67, openSD: 1168.42, g: -2.38, openVarWrong: true},
	},
	"6-6, production": {
		{workload: "A", aws: 4801.11, awsVar: 227879.34, awsSD: 477.37, open: 3365.03, openVar: 168565.21, openSD: 410.57, g: -3.23},
		{workload: "B", aws: 4376.16, awsVar: 153523.10, awsSD: 391.82, open: 3294.15, openVar: 410842.40, openSD: 640.97, g: -2.04},
		{workload: "C", aws: 5074.99, awsVar: 2718930.91, awsSD: 528.14, open: 3412.42, openVar: 195765.44, openSD: 442.45, g: -3.41, awsVarWrong: true},
		{workload: "D", aws: 5847.07, awsVar: 293820.89, awsSD: 542.05, open: 3593.30, openVar: 568738.10, openSD: 754.15, g: -3.43},
		{workload: "E", aws: 4998.95, awsVar: 331969.01, awsSD: 576.16, open: 3545.84, openVar: 248620.36, openSD: 498.62, g: -2.70},
		{workload: "F", aws: 5231.21, awsVar: 361076.65, awsSD: 600.89, open: 3560.52, openVar: 184081.70, openSD: 429.04, g: -3.20},
	},
}

func TestTables6_4To6_6Recomputed(t *testing.T) {
	square := func(sd, variance float64) bool { return math.Abs(sd*sd/variance-1) < 0.005 }
	for table, rows := range throughputTables {
		for _, r := range rows {
			e := stats.EffectOf(stats.Estimate{N: 5, Mean: r.aws, SD: r.awsSD}, stats.Estimate{N: 5, Mean: r.open, SD: r.openSD})
			if got := math.Round(100*e.Uncorrected) / 100; got != r.g {
				t.Errorf("%s %s: g %v, want %v", table, r.workload, got, r.g)
			}
			if square(r.awsSD, r.awsVar) == r.awsVarWrong || square(r.openSD, r.openVar) == r.openVarWrong {
				t.Errorf("%s %s: variances %v and %v, SDs squared %.0f and %.0f", table, r.workload, r.awsVar, r.openVar, r.awsSD*r.awsSD, r.openSD*r.openSD)
			}
		}
	}
}

func TestTable6_7Recomputed(t *testing.T) {
	for table, rows := range cpuTables {
		for _, r := range rows {
			d := stats.Difference(stats.Estimate{N: 5, Mean: r.aws, SD: r.awsSD}, stats.Estimate{N: 5, Mean: r.open, SD: r.sdOS})
			misprint := table == "6-2, 5 nodes" && r.workload == "F" // 25.53 of the means, 25.23 in the table
			if off := math.Abs(d.Mean-r.difference) > 0.005; off != misprint {
				t.Errorf("%s %s: difference %.2f, the document prints %v", table, r.workload, d.Mean, r.difference)
			}
		}
	}
}
