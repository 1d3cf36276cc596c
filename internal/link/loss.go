package link

// LossShare is the share of packets that q loses over a long time, in bursts or not.
func (q Quality) LossShare() float64 {
	delivered := 1 - q.Loss
	if b := q.Burst; b != nil {
		delivered *= 1 - b.LossShare()
	}
	return 1 - delivered
}

// LossShare is the share of packets that the model loses over a long time. It begins in the
// good state, where it stays if P is 0.
func (b GilbertElliott) LossShare() float64 {
	if b.P == 0 {
		return 1 - b.K
	}
	bad := b.P / (b.P + b.R)
	return bad*(1-b.H) + (1-bad)*(1-b.K)
}

// Equal tells whether two qualities do the same to packets.
func (q Quality) Equal(o Quality) bool {
	if (q.Burst == nil) != (o.Burst == nil) || q.Burst != nil && *q.Burst != *o.Burst {
		return false
	}
	q.Burst, o.Burst = nil, nil
	return q == o
}
