/* Prints the first line of MPI_Get_library_version as a C string. Runs when the library is built.
 * */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len;
    MPI_Get_library_version(version, &len);
    version[strcspn(version, ",\n")] = '\0';
    printf("#define BUILT_WITH \"");
    for (const char *c = version; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : *c < ' ' ? " " : "%c", *c);
    printf("\"\n");
    return 0;
}
