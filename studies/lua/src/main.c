/* Runs one Lua script with arguments: the host program that the library does not bring along. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

/* The script's arguments, as the global table `arg`. */
static void set_arguments(lua_State *L, int argc, char **argv)
{
	int i;

	lua_createtable(L, argc, 0);
	for (i = 2; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - 1);
	}
	lua_setglobal(L, "arg");
}

int main(int argc, char **argv)
{
	lua_State *L;
	int failed;

	if (argc < 2) {
		fprintf(stderr, "usage: lua SCRIPT [ARGUMENT...]\n");
		return 2;
	}
	L = luaL_newstate();
	if (!L) {
		fprintf(stderr, "lua: out of memory\n");
		return 1;
	}
	luaL_openlibs(L);
	set_arguments(L, argc, argv);
	failed = luaL_dofile(L, argv[1]);
	if (failed)
		fprintf(stderr, "lua: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return failed ? 1 : 0;
}
