package cache

import "container/list"

// An owner has the values of one owner of a Cache.
type owner[V any] struct {
	name  string
	order list.List // of *entry[V], the least recent one at the back
	bytes int       // of its entries
	at    int       // its place in the heap
}

// owners are a heap (package heap) with the owner of the most bytes in front.
type owners[V any] []*owner[V]

func (o owners[V]) Len() int           { return len(o) }
func (o owners[V]) Less(i, j int) bool { return o[i].bytes > o[j].bytes }

func (o owners[V]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at, o[j].at = i, j
}

func (o *owners[V]) Push(x any) {
	x.(*owner[V]).at = len(*o)
	*o = append(*o, x.(*owner[V]))
}

func (o *owners[V]) Pop() any {
	last := (*o)[len(*o)-1]
	(*o)[len(*o)-1] = nil
	*o = (*o)[:len(*o)-1]
	return last
}
