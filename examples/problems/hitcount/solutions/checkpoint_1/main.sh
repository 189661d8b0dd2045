# Counts requests in web server logs.

LC_ALL=C
export LC_ALL

fail() {
    printf 'hitcount: %s\n' "$2" >&2
    exit "$1"
}

is_number() {
    case $1 in
        '' | *[!0-9]*) return 1 ;;
    esac
}

command=${1-}
[ $# -gt 0 ] && shift
limit=
case $command in
    status | bytes) ;;
    paths)
        if [ "${1-}" = -n ]; then
            is_number "${2-}" || fail 2 '-n needs a whole number'
            limit=$2
            shift 2
        fi
        ;;
    *) fail 2 "unknown command \"$command\"" ;;
esac

if [ $# -gt 0 ]; then
    [ -f "$1" ] && [ -r "$1" ] || fail 1 "cannot read $1"
    exec < "$1"
fi

# Nothing may be printed before the whole log has proven sound, so awk counts first and prints at its end.
counted=$(awk -v command="$command" -f "$(dirname "$0")/count.awk") || exit 1
[ -n "$counted" ] || exit 0

case $command in
    status) printf '%s\n' "$counted" | sort ;;
    paths) printf '%s\n' "$counted" | sort -k1,1nr -k2,2 | awk -v limit="$limit" 'limit == "" || NR <= limit + 0' ;;
    bytes) printf '%s\n' "$counted" ;;
esac
