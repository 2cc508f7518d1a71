package main

import "testing"

func consoleLooks(t *testing.T, o office) {}
func consoleSpeed(t *testing.T, o office) {}
