package packet

// classes are the buffer sizes in bytes: acknowledgements, single packets, parts of super-packets, and
// whole super-packets.
var classes = [...]int{256, 2048, 16 << 10, Largest}

// Pool reuses packets: steady traffic allocates nothing. It is not safe for concurrent use.
type Pool struct {
	limit int64
	used  int64
	free  [len(classes)][]*Packet
	least [len(classes)]int // minimum length of free since the last Trim
}

// NewPool creates a pool with at most limit bytes in use.
func NewPool(limit int64) *Pool { return &Pool{limit: limit} }

// Get returns a packet with a buffer of at least size bytes, or nil at the limit.
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

// Put returns a packet to the pool.
func (p *Pool) Put(k *Packet) {
	p.used -= int64(classes[k.class])
	p.free[k.class] = append(p.free[k.class], k)
}

// Used returns the bytes of buffers in use.
func (p *Pool) Used() int64 { return p.used }

// Idle returns the number of unused packets.
func (p *Pool) Idle() int {
	n := 0
	for _, free := range p.free {
		n += len(free)
	}
	return n
}

// Trim releases a quarter of the packets that stayed unused since the last Trim.
func (p *Pool) Trim() {
	for class := range p.free {
		free := p.free[class]
		keep := len(free) - (p.least[class]+3)/4
		clear(free[keep:])
		p.free[class] = free[:keep]
		p.least[class] = keep
	}
}
