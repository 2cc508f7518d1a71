package main

import "github.com/prometheus/client_golang/prometheus"

// buildInfo says what this process is: an upgrade shows.
func buildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "runlens_build_info", Help: "1, with the version and the commit of this process.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit()},
	})
	info.Set(1)
	return info
}
