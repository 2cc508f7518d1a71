package main
import "context"
func (s *soak) proveMixed(ctx context.Context) error { return nil }
func (s *soak) proveSmuggling(ctx context.Context) error { return nil }
