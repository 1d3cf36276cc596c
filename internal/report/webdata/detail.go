package webdata

import "skerry/internal/record"

// Detail is the document of a trial. All series of one struct are of one length.
type Detail struct {
	Schema   string    `json:"schema"`
	ID       int       `json:"id"`
	Timeline *Timeline `json:"timeline,omitempty"`
	Nodes    *Nodes    `json:"nodes,omitempty"`
	Network  *Network  `json:"network,omitempty"`
	Bands    []Band    `json:"bands,omitempty"`
	// Operations and Probes tell the 95th percentile by kind of operation.
	Operations *Operations `json:"operations,omitempty"`
	Probes     *Probes     `json:"probes,omitempty"`
	Curves     []Curve     `json:"curves,omitempty"`
	Heat       *Heat       `json:"heat,omitempty"`
	Traffic    *Traffic    `json:"traffic,omitempty"`
	Cloud      *Cloud      `json:"cloud,omitempty"`
	// Links are set against measured.
	Links []record.LinkFidelity `json:"links,omitempty"`
	Notes []string              `json:"notes,omitempty"` // what could not be read
}

// Timeline is what the driver saw. Rates are means over a bin, latencies the highest of a
// bin's seconds, in microseconds: percentiles are never averaged.
type Timeline struct {
	BinS    int     `json:"bin_s"` // seconds in a bin
	T       moments `json:"t"`     // begin of each bin, in seconds since the measurement began
	OK      series  `json:"ok"`    // operations a second
	Failed  series  `json:"failed"`
	Unknown series  `json:"unknown"`
	Dropped series  `json:"dropped"`

	ServiceP50   series `json:"service_p50"`
	ServiceP99   series `json:"service_p99"`
	ServiceP999  series `json:"service_p999"`
	ResponseP50  series `json:"response_p50"`
	ResponseP99  series `json:"response_p99"`
	ResponseP999 series `json:"response_p999"`
	InFlight     series `json:"in_flight"`
}

// Operations has the 95th percentile of the response time of each kind of operation over
// time, in microseconds: the highest of a bin's seconds, 0 where none ended ok.
type Operations struct {
	BinS  int      `json:"bin_s"`
	T     moments  `json:"t"`
	Names []string `json:"names"`
	P95   []series `json:"p95"` // as Names
}

// Probes are the short jobs beside the workload: when each began, and the 95th percentile of
// its operations by kind, in microseconds, 0 where none ended ok.
type Probes struct {
	T      series   `json:"t"`
	Names  []string `json:"names"`
	P95    []series `json:"p95"`              // as Names
	Failed int      `json:"failed,omitempty"` // jobs that could not be driven
}

// Nodes is what nodes used, means over a bin; a series a node.
type Nodes struct {
	BinS   int       `json:"bin_s"`
	T      moments   `json:"t"`
	Names  []string  `json:"names"`
	Series []NodeUse `json:"series"` // as Names
	Hidden int       `json:"hidden,omitempty"`
}

// NodeUse is one node's series: cores, bytes, and bytes a second.
type NodeUse struct {
	CPU    series `json:"cpu"`
	Memory series `json:"memory"`
	Read   series `json:"read"`
	Wrote  series `json:"wrote"`
	Rx     series `json:"rx"`
	Tx     series `json:"tx"`
}

// Network is what packets met between nodes where an overlay routes.
type Network struct {
	BinS        int     `json:"bin_s"`
	T           moments `json:"t"`
	MeanMS      series  `json:"mean_ms"`
	WorstMS     series  `json:"worst_ms"`
	Unreachable series  `json:"unreachable"`
}

// Band is an event as a stretch of the timeline. To is null where it lasted to the end.
type Band struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Text    string   `json:"text"`
	From    num      `json:"from"`
	To      *num     `json:"to,omitempty"`
	Targets []string `json:"targets,omitempty"`
	State   string   `json:"state,omitempty"`
	Error   string   `json:"error,omitempty"`
	LateMS  num      `json:"late_ms,omitempty"`
	// AcceptedS and CompleteS count from From; Moved is in bytes.
	AcceptedS *num  `json:"accepted_s,omitempty"`
	CompleteS *num  `json:"complete_s,omitempty"`
	Moved     int64 `json:"moved,omitempty"`
}

// Curve is a distribution: Tail[i] of the operations, a share of 0 to 1, took longer than
// US[i] microseconds.
type Curve struct {
	Operation string `json:"operation"`
	Clock     string `json:"clock"` // service or response
	Count     int64  `json:"count"`
	Tail      series `json:"tail"`
	US        series `json:"us"`
}

// Heat counts operations by time and latency: Counts[i][j] began in bin i and took from
// Edges[j] to Edges[j+1] microseconds.
type Heat struct {
	Clock  string    `json:"clock"`
	BinS   num       `json:"bin_s"`
	T      moments   `json:"t"`
	Edges  series    `json:"edges"`
	Counts [][]int64 `json:"counts"`
}

// Traffic is bytes from node to node: Nodes[From[i]] sent Bytes[i] to Nodes[To[i]].
type Traffic struct {
	Nodes []string `json:"nodes"`
	From  []int    `json:"from"`
	To    []int    `json:"to"`
	Bytes []int64  `json:"bytes"`
	// Left counts pairs that are left out since others exchanged more.
	Left int `json:"left,omitempty"`
}

// Cloud is where nodes stand and what links them.
type Cloud struct {
	Sites []Site      `json:"sites"`
	Nodes []Node      `json:"nodes"`
	Links []CloudLink `json:"links"`
	Left  int         `json:"left,omitempty"` // links that are left out
}

// Site is a place; Lat and Lon are degrees where Located.
type Site struct {
	Name    string `json:"name"`
	Lat     num    `json:"lat,omitempty"`
	Lon     num    `json:"lon,omitempty"`
	Located bool   `json:"located,omitempty"`
}

// Node stands at Sites[Site].
type Node struct {
	Name string `json:"name"`
	Site int    `json:"site"`
	Role string `json:"role"`
}

// CloudLink joins Nodes[A] and Nodes[B]: round trip in milliseconds and the smaller bandwidth
// in bits a second, 0 for none, as set before any event.
type CloudLink struct {
	ID    string `json:"id"`
	A     int    `json:"a"`
	B     int    `json:"b"`
	RTTMS num    `json:"rtt_ms"`
	BPS   int64  `json:"bps,omitempty"`
}
