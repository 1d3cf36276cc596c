package record

// derive gives the events of runs from before record.Effect the effect of their kind. These are
// the kinds that there were then; a newer one is recorded with its own.
func derive(kind string, of **Effect) {
	if e, ok := effectsBefore[kind]; ok && *of == nil {
		*of = &e
	}
}

var effectsBefore = map[string]Effect{
	"latency":      {On: OnLinks, Makes: Changed},
	"bandwidth":    {On: OnLinks, Makes: Changed},
	"loss":         {On: OnLinks, Makes: Changed},
	"jitter":       {On: OnLinks, Makes: Changed},
	"link_down":    {On: OnLinks, Makes: Down},
	"link_up":      {On: OnLinks, Makes: Up},
	"link_flap":    {On: OnLinks, Makes: Down},
	"partition":    {On: OnLinks, Makes: Down},
	"kill":         {On: OnNodes, Makes: Down},
	"stop":         {On: OnNodes, Makes: Down},
	"start":        {On: OnNodes, Makes: Up, Settles: true},
	"restart":      {On: OnNodes, Makes: Changed, Settles: true},
	"pause":        {On: OnNodes, Makes: Down},
	"resume":       {On: OnNodes, Makes: Up, Settles: true},
	"leave":        {On: OnNodes, Makes: Down, Settles: true, Member: Leaves},
	"join":         {On: OnNodes, Makes: Up, Settles: true, Member: Joins},
	"cpu":          {On: OnNodes, Makes: Changed},
	"memory":       {On: OnNodes, Makes: Changed},
	"disk_slow":    {On: OnNodes, Makes: Changed},
	"disk_full":    {On: OnNodes, Makes: Changed},
	"network_load": {On: OnStreams, Makes: Changed},
	"clock_skew":   {On: OnNodes, Makes: Changed},
}
