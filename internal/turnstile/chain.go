package turnstile

// chain is a doubly linked list whose links are part of what is linked: joining and leaving allocate nothing.
type chain[T any] struct{ first, last *link[T] }

// link is the part that is linked. It is in one chain at most.
type link[T any] struct {
	value      T
	prev, next *link[T]
	in         bool
}

func (c *chain[T]) push(l *link[T], value T) {
	l.value = value
	c.insert(l, c.last)
}

// insert puts l, which is in no chain, behind at; nil: to the front.
func (c *chain[T]) insert(l, at *link[T]) {
	l.in, l.prev = true, at
	if at == nil {
		l.next, c.first = c.first, l
	} else {
		l.next, at.next = at.next, l
	}
	if l.next == nil {
		c.last = l
	} else {
		l.next.prev = l
	}
}

// remove takes l out, if it is in.
func (c *chain[T]) remove(l *link[T]) {
	if !l.in {
		return
	}
	if l.prev == nil {
		c.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		c.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.in, l.prev, l.next = false, nil, nil
}

func (c *chain[T]) empty() bool { return c.first == nil }
