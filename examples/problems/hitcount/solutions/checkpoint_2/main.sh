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
case $command in
    status | paths | bytes | hours) ;;
    *) fail 2 "unknown command \"$command\"" ;;
esac

limit= method= status= prefix=
while [ $# -gt 0 ]; do
    case $command$1 in
        paths-n)
            is_number "${2-}" || fail 2 '-n needs a whole number'
            limit=$2
            ;;
        *-[msp])
            [ $# -gt 1 ] || fail 2 "$1 needs a value"
            case $1 in
                -m) method=$2 ;;
                -s) status=$2 ;;
                -p) prefix=$2 ;;
            esac
            ;;
        "$command"-*) fail 2 "unknown option \"$1\"" ;;
        *) break ;;
    esac
    shift 2
done
case $status in
    '' | [0-9][0-9][0-9] | [0-9]xx) ;;
    *) fail 2 "bad status filter \"$status\"" ;;
esac

if [ $# -gt 0 ]; then
    [ -f "$1" ] && [ -r "$1" ] || fail 1 "cannot read $1"
    exec < "$1"
fi

# Nothing may be printed before the whole log has proven sound, so awk counts first and prints at its end.
# The filters travel in the environment, because awk reads backslashes in -v values as escapes.
counted=$(
    METHOD=$method STATUS=$status PREFIX=$prefix awk -v command="$command" -f "$(dirname "$0")/count.awk"
) || exit 1
[ -n "$counted" ] || exit 0

case $command in
    status | hours) printf '%s\n' "$counted" | sort ;;
    paths) printf '%s\n' "$counted" | sort -k1,1nr -k2,2 | awk -v limit="$limit" 'limit == "" || NR <= limit + 0' ;;
    bytes) printf '%s\n' "$counted" ;;
esac
