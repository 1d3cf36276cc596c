package packet

// classes are the sizes of buffers in bytes: acknowledgements, single packets, pieces of
// super-packets, whole ones.
var classes = [...]int{256, 2048, 16 << 10, Largest}

// Pool keeps packets for reuse: while traffic is steady nothing is allocated. It belongs
// to one thread.
type Pool struct {
	limit int64
	used  int64
	free  [len(classes)][]*Packet
	least [len(classes)]int // the shortest that free was since the last Trim
}

// NewPool makes a pool of which at most limit bytes are out at a time.
func NewPool(limit int64) *Pool { return &Pool{limit: limit} }

// Get returns a packet with room for size bytes, nil when the limit is reached.
func (p *Pool) Get(size int) *Packet {
	class := 0
	for class < len(classes)-1 && classes[class] < size {
		class++
	}
	if p.used+int64(classes[class]) > p.limit {
		return nil
	}
	p.used += int64(classes[class])
	free := p.free[class]
	if len(free) == 0 {
		return &Packet{buf: make([]byte, classes[class]), class: int8(class)}
	}
	last := len(free) - 1
	got := free[last]
	free[last] = nil
	p.free[class] = free[:last]
	p.least[class] = min(p.least[class], last)
	return got
}

// Put gives a packet back.
func (p *Pool) Put(k *Packet) {
	p.used -= int64(classes[k.class])
	p.free[k.class] = append(p.free[k.class], k)
}

// Used is the bytes of buffers that are out.
func (p *Pool) Used() int64 { return p.used }

// Idle is how many packets nobody uses.
func (p *Pool) Idle() int {
	n := 0
	for _, free := range p.free {
		n += len(free)
	}
	return n
}

// Trim lets go of a quarter of the packets that nobody needed since the last Trim.
func (p *Pool) Trim() {
	for class := range p.free {
		free := p.free[class]
		keep := len(free) - (p.least[class]+3)/4
		clear(free[keep:])
		p.free[class] = free[:keep]
		p.least[class] = keep
	}
}
