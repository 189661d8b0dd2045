function fail(message) {
    printf "hitcount: line %d: %s\n", NR, message > "/dev/stderr"
    failed = 1
    exit 1
}

/^$/ { next }
NF != 5 { fail("expected 5 fields, found " NF) }
$4 !~ /^[0-9][0-9][0-9]$/ { fail("bad status \"" $4 "\"") }
$5 !~ /^[0-9]+$/ { fail("bad bytes \"" $5 "\"") }

{
    statuses[$4]++
    paths[$3]++
    bytes += $5
}

END {
    if (failed) exit 1
    if (command == "status") for (status in statuses) print status, statuses[status]
    if (command == "paths") for (path in paths) print paths[path], path
    if (command == "bytes") printf "%.0f\n", bytes
}
