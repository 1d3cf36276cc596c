set -u
echo "skerry carrier $(uname -s) $(uname -m)"
read -r sum size || exit 0
if [ -n "${SKERRY_CACHE:-}" ]; then dir=$SKERRY_CACHE
elif [ "$(id -u)" = 0 ]; then dir=/var/cache/skerry
else dir=${XDG_CACHE_HOME:-$HOME/.cache}/skerry; fi
dir=$dir/agent/$sum
file=$dir/skerry
check() { [ -x "$1" ] && [ "$(sha256sum <"$1" | cut -c1-64)" = "$sum" ]; }
if ! check "$file"; then
	new=$file.$$
	trap 'rm -f "$new"' EXIT
	mkdir -p "$dir" && : >"$new" && chmod 755 "$new" || { echo failed; exit 1; }
	echo send
	head -c "$size" >"$new" || { echo failed; exit 1; }
	check "$new" || { echo "what arrived is not what was sent" >&2; echo failed; exit 1; }
	mv "$new" "$file" || { echo failed; exit 1; }
	trap - EXIT
fi
echo run
