package push

// Waiting is how many requests wait for the next insert.
func (l *Lane) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Resolving is how many requests wait for the next resolution.
func (l *Lane) Resolving() int { return l.resolver.shared.Waiting() }
