// r_10_4: in0 in1 out0
void r_10_4(int* restrict data0, float* restrict data1, float* restrict data2) {
  for (int ridx0 = 0; ridx0 < 10; ridx0++) {
    for (int ridx1 = 0; ridx1 < 4; ridx1++) {
      data2[((ridx0*4)+ridx1)] = 0.0f;
    }
  }
  for (int ridx2 = 0; ridx2 < 2; ridx2++) {
    for (int ridx3 = 0; ridx3 < 2; ridx3++) {
      int val1 = data0[((ridx2*2)+ridx3)];
      int alu2 = ((val1<0)?(val1+10):val1);
      _Bool alu3 = ((-1<alu2)&(alu2<10));
      for (int ridx4 = 0; ridx4 < 4; ridx4++) {
        int alu4 = (((alu3?alu2:0)*4)+ridx4);
        float val5 = data2[alu4];
        float val6 = data1[alu4];
        float alu7 = (alu3?val6:0.0f);
        data2[alu4] = (val5+(alu3?(alu7+alu7):0.0f));
      }
    }
  }
}
