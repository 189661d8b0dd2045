function fail(message) {
    printf "hitcount: line %d: %s\n", NR, message > "/dev/stderr"
    failed = 1
    exit 1
}

function wanted() {
    if (ENVIRON["METHOD"] != "" && $2 != ENVIRON["METHOD"]) return 0
    if (ENVIRON["STATUS"] ~ /xx$/ && substr($4, 1, 1) != substr(ENVIRON["STATUS"], 1, 1)) return 0
    if (ENVIRON["STATUS"] ~ /^[0-9]+$/ && $4 != ENVIRON["STATUS"]) return 0
    return index($3, ENVIRON["PREFIX"]) == 1 || ENVIRON["PREFIX"] == ""
}

/^$/ { next }
NF != 5 { fail("expected 5 fields, found " NF) }
$4 !~ /^[0-9][0-9][0-9]$/ { fail("bad status \"" $4 "\"") }
$5 !~ /^[0-9]+$/ { fail("bad bytes \"" $5 "\"") }

wanted() {
    statuses[$4]++
    paths[$3]++
    hours[substr($1, 1, 13)]++
    bytes += $5
}

END {
    if (failed) exit 1
    if (command == "status") for (status in statuses) print status, statuses[status]
    if (command == "paths") for (path in paths) print paths[path], path
    if (command == "hours") for (hour in hours) print hour, hours[hour]
    if (command == "bytes") printf "%.0f\n", bytes
}
