package webdata

import (
	"skerry/internal/record"
	"skerry/internal/report/series"
)

// Detail is the document of a trial. All series of one struct are of one length.
type Detail struct {
	Schema   string           `json:"schema"`
	ID       int              `json:"id"`
	Timeline *series.Timeline `json:"timeline,omitempty"`
	// Pools are the goodputs of workloads side by side, Errors what did not end ok, by class.
	Pools   *series.Rates   `json:"pools,omitempty"`
	Errors  *series.Rates   `json:"errors,omitempty"`
	Nodes   *series.Nodes   `json:"nodes,omitempty"`
	Network *series.Network `json:"network,omitempty"`
	Bands   []series.Band   `json:"bands,omitempty"`
	// Operations and Probes tell the 95th percentile by kind of operation.
	Operations *series.Operations `json:"operations,omitempty"`
	Probes     *series.Probes     `json:"probes,omitempty"`
	Curves     []series.Curve     `json:"curves,omitempty"`
	Heat       *series.Heat       `json:"heat,omitempty"`
	Traffic    *Traffic           `json:"traffic,omitempty"`
	Cloud      *Cloud             `json:"cloud,omitempty"`
	// Links are set against measured.
	Links []record.LinkFidelity `json:"links,omitempty"`
	Notes []string              `json:"notes,omitempty"` // what could not be read
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
	Name    string        `json:"name"`
	Lat     series.Number `json:"lat,omitempty"`
	Lon     series.Number `json:"lon,omitempty"`
	Located bool          `json:"located,omitempty"`
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
	ID    string        `json:"id"`
	A     int           `json:"a"`
	B     int           `json:"b"`
	RTTMS series.Number `json:"rtt_ms"`
	BPS   int64         `json:"bps,omitempty"`
}
