package record

// DirectionSecond is one row of directions.parquet: one direction of a link in one second of the
// measurement in which it carried, dropped or queued packets.
type DirectionSecond struct {
	T    int64  `parquet:"t" json:"t"`
	Link string `parquet:"link,dict" json:"link"`
	From string `parquet:"from,dict" json:"from"` // node
	To   string `parquet:"to,dict" json:"to"`     // node
	// Delivered packets and their bytes, and packets dropped by a full queue, or as loss or because
	// the link was down.
	Packets      int64 `parquet:"packets" json:"packets"`
	Bytes        int64 `parquet:"bytes" json:"bytes"`
	DroppedQueue int64 `parquet:"dropped_queue" json:"dropped_queue"`
	DroppedLoss  int64 `parquet:"dropped_loss" json:"dropped_loss"`
	// Settings in force at the end of the second. BPS is 0 without a limit.
	SetLatency float64 `parquet:"set_latency_ms" json:"set_latency_ms"`
	SetJitter  float64 `parquet:"set_jitter_ms" json:"set_jitter_ms"`
	SetBPS     int64   `parquet:"set_bps" json:"set_bps"`
	SetDown    bool    `parquet:"set_down" json:"set_down"`
	// Observed is false where the engine does not see packets (netem); the columns below are 0 then.
	Observed bool `parquet:"observed" json:"observed"`
	// Waiting bytes are in the queue at the end of the second, flying packets have left it.
	Waiting int64 `parquet:"waiting_bytes" json:"waiting_bytes"`
	Flying  int64 `parquet:"flying_packets" json:"flying_packets"`
	// Delay from arrival to hand-over, of which Queued is the time until the last bit had left the wire.
	DelayMean float64 `parquet:"delay_mean_ms" json:"delay_mean_ms"`
	DelayP50  float64 `parquet:"delay_p50_ms" json:"delay_p50_ms"`
	DelayP99  float64 `parquet:"delay_p99_ms" json:"delay_p99_ms"`
	Queued    float64 `parquet:"queued_mean_ms" json:"queued_mean_ms"`
	// Spread is the rest of the delay less the latency: jitter and the emulator's lateness.
	SpreadMean float64 `parquet:"spread_mean_ms" json:"spread_mean_ms"`
	SpreadSD   float64 `parquet:"spread_sd_ms" json:"spread_sd_ms"`
	// Changes of the settings in this second.
	Changes int64 `parquet:"changes" json:"changes"`
	// Packets that broke a law, see LawEarly and the others.
	Early int64 `parquet:"early" json:"early"`
	Late  int64 `parquet:"late" json:"late"`
	Fast  int64 `parquet:"fast" json:"fast"`
	Slow  int64 `parquet:"slow" json:"slow"`
}

// Laws that each packet of a link obeys.
const (
	LawEarly = "early" // handed over no sooner than latency and jitter allow
	LawLate  = "late"  // handed over no later than latency, jitter and the emulator's lateness explain
	LawFast  = "fast"  // left the queue no sooner than the rate allows
	LawSlow  = "slow"  // left the queue no later than the rate allows
)

// Account sums up what the emulator observed on links while a trial measured.
type Account struct {
	// NotMeasured is why there is none: nothing else is set then.
	NotMeasured string `json:"not_measured,omitempty"`
	// Directions of links that carried packets, and these packets; a super-packet counts as one.
	Directions int64 `json:"directions,omitempty"`
	Packets    int64 `json:"packets,omitempty"`
	// Broken are the laws that packets broke, each with the worst case.
	Broken []LawViolation `json:"broken,omitempty"`
	// Jitter is that of the direction that is farthest from its setting; nil if none could be judged.
	Jitter *Jitter `json:"jitter,omitempty"`
	// Changes of directions by events and drift.
	Changes *Changes `json:"changes,omitempty"`
}

// LawViolation is a law that packets broke. The packets are those of one direction in the second T, or in
// the whole measurement where T is -1.
type LawViolation struct {
	Law     string  `json:"law"`
	Link    string  `json:"link"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	T       int64   `json:"t"`
	Packets int64   `json:"packets"` // that broke it
	Of      int64   `json:"of"`      // delivered
	WorstMS float64 `json:"worst_ms"`
	// Beyond says that these are more than the tolerance, and Times how many seconds of directions had that.
	Beyond bool  `json:"beyond,omitempty"`
	Times  int64 `json:"times,omitempty"`
	// Total is how many packets of all directions broke it in the measurement.
	Total int64 `json:"total"`
}

// Jitter compares the spread of the delays of one direction with the jitter that was set.
type Jitter struct {
	Link   string  `json:"link"`
	From   string  `json:"from"`
	To     string  `json:"to"`
	MeanMS float64 `json:"mean_ms"` // mean delay less queue and latency; 0 is right
	// MeanLimitMS is what the mean may be off by.
	MeanLimitMS float64 `json:"mean_limit_ms"`
	SDMS        float64 `json:"sd_ms"`
	SetSDMS     float64 `json:"set_sd_ms"`
	LeastSDMS   float64 `json:"least_sd_ms"`
	MostSDMS    float64 `json:"most_sd_ms"`
}

// Changes counts directions of links that events and drift changed, by what was observed.
type Changes struct {
	Directions  int64 `json:"directions"`
	InEffect    int64 `json:"in_effect"`
	NoPacket    int64 `json:"no_packet"`
	Superseded  int64 `json:"superseded"`
	Unconfirmed int64 `json:"unconfirmed"`
	// Worst is the unconfirmed one that most packets crossed.
	Worst *Unconfirmed `json:"worst,omitempty"`
}

// Observed is what the emulator observed after one change of links.
type Observed struct {
	// Set is when the emulator had all changes.
	Set Moment `json:"set"`
	// InEffect is by when a packet had obeyed the last of the changes that were confirmed; nil without any.
	InEffect *Moment `json:"in_effect,omitempty"`
	// Directions that were changed. Of these a packet was observed to obey the change on Confirmed ones,
	// no packet crossed NoPacket ones, and Superseded ones were changed again before a packet did. The
	// others are Unconfirmed: packets crossed, and none obeyed.
	Directions  int64         `json:"directions"`
	Confirmed   int64         `json:"confirmed"`
	NoPacket    int64         `json:"no_packet,omitempty"`
	Superseded  int64         `json:"superseded,omitempty"`
	Unconfirmed []Unconfirmed `json:"unconfirmed,omitempty"`
}

// Unconfirmed is a direction that was changed, and whose packets did not obey the change.
type Unconfirmed struct {
	Link    string  `json:"link"`
	Back    bool    `json:"back,omitempty"` // from its end B to A
	AtS     float64 `json:"at_s"`           // when it was set
	Packets int64   `json:"packets"`        // that crossed
}

// Add counts what was observed after one change.
func (c *Changes) Add(o Observed) {
	c.Directions += o.Directions
	c.InEffect += o.Confirmed
	c.NoPacket += o.NoPacket
	c.Superseded += o.Superseded
	c.Unconfirmed += int64(len(o.Unconfirmed))
	for _, u := range o.Unconfirmed {
		if c.Worst == nil || u.Packets > c.Worst.Packets {
			c.Worst = &u
		}
	}
}
